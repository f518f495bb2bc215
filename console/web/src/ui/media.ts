import { useEffect, useState } from "preact/hooks";

/** useMedia says whether a media query holds. */
export function useMedia(query: string): boolean {
  const [holds, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const onChange = () => set(media.matches);
    media.addEventListener("change", onChange);
    return () => media.removeEventListener("change", onChange);
  }, [query]);
  return holds;
}
