/** Pages that are loaded when they are first shown. */
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../texts.js";

/** How long a page that could not be loaded waits before it is asked for again, in ms. */
const pause = 1000;

/**
 * lazy returns a component that is loaded when it is first shown. A browser ends its requests
 * when a network comes or goes on its host, as one does with each box there.
 */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    const [, again] = useState(0);
    useEffect(() => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const ask = () =>
        void load().then(
          (component) => {
            Loaded = component;
            again(1);
          },
          () => (timer = setTimeout(ask, pause)),
        );
      if (!Loaded) ask();
      return () => clearTimeout(timer);
    }, []);
    return Loaded ? (
      <Loaded {...props} />
    ) : (
      <p class="quiet" aria-busy="true">
        {t.common.loading}
      </p>
    );
  };
}
