/** Light and dark: as the system wants, unless the user has chosen. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const [store, dark] = ["sandbox-theme", matchMedia("(prefers-color-scheme: dark)")];

/** What the user has chosen. */
export const theme = signal<Theme>((localStorage.getItem(store) as Theme | null) ?? "system");

/** Whether the page is dark now. */
export const isDark = signal(false);

const settle = () => (isDark.value = theme.value === "dark" || (theme.value === "system" && dark.matches));
dark.addEventListener("change", settle);

effect(() => {
  localStorage.setItem(store, theme.value);
  settle();
  document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
});

/** color returns the value of a custom property of the page, for what is drawn and not styled. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
