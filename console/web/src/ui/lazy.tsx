/** Pages that are loaded when they are first shown. */
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../texts.js";

/** lazy returns a component that is loaded when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    const [, again] = useState(0);
    useEffect(() => {
      if (!Loaded)
        void load().then((component) => {
          Loaded = component;
          again(1);
        });
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
