/** Pages that are loaded when they are first shown. */
import type { ComponentType, JSX } from "preact";
import { usePoll } from "../poll.js";
import { t } from "../texts.js";

/**
 * lazy returns a component that is loaded when it is first shown. It is asked for until it is
 * there: a browser ends its requests when a network comes or goes on its host, as one does with
 * each box there.
 */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function Lazy(props: P): JSX.Element {
    usePoll(async () => (Loaded ??= await load()), Loaded ? 0 : 1000, "");
    return Loaded ? (
      <Loaded {...props} />
    ) : (
      <p class="quiet" aria-busy="true">
        {t.common.loading}
      </p>
    );
  };
}
