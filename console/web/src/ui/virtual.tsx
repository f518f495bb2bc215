/** A long list, of which only the rows in sight are in the page. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows in the page above and below those in sight. */
const spare = 6;

/** Props of a Virtual list. row returns the row of an item; its style says where it stands. */
interface Props<T> {
  items: T[];
  height: number;
  keyOf: (item: T) => string;
  row: (item: T, index: number, style: { transform: string; height: string }) => JSX.Element;
}

/** Virtual shows items as rows of one height. It scrolls with the page. */
export function Virtual<T>({ items, height, keyOf, row }: Props<T>): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const [[first, count], set] = useState([0, 30]);
  const look = () => {
    const above = -(ref.current?.getBoundingClientRect().top ?? 0);
    const next = Math.max(0, Math.floor(above / height) - spare);
    const many = Math.ceil(innerHeight / height) + 2 * spare;
    set((old) => (old[0] === next && old[1] === many ? old : [next, many]));
  };
  useEffect(() => {
    const options = { passive: true, capture: true };
    addEventListener("scroll", look, options);
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look, options);
      removeEventListener("resize", look);
    };
  }, [height]);
  useLayoutEffect(look, [items.length, height]);
  return (
    <div ref={ref} class="virtual" role="rowgroup" style={{ height: `${items.length * height}px` }}>
      {items.slice(first, first + count!).map((item, i) => (
        <Keyed key={keyOf(item)}>
          {row(item, first! + i, { transform: `translateY(${(first! + i) * height}px)`, height: `${height}px` })}
        </Keyed>
      ))}
    </div>
  );
}

const Keyed = ({ children }: { children: JSX.Element }): JSX.Element => children;
