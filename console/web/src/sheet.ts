/**
 * The element sheet-style is a style element that a strict Content-Security-Policy
 * allows: its text becomes a style sheet of the document while it is in the page.
 * vite.config.ts has xterm make it.
 */
class SheetStyle extends HTMLElement {
  readonly #sheet = new CSSStyleSheet();

  override get textContent(): string {
    return [...this.#sheet.cssRules].map((rule) => rule.cssText).join("\n");
  }

  override set textContent(rules: string | null) {
    this.#sheet.replaceSync(rules ?? "");
  }

  connectedCallback(): void {
    this.hidden = true;
    if (!document.adoptedStyleSheets.includes(this.#sheet)) document.adoptedStyleSheets.push(this.#sheet);
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.#sheet);
  }
}

customElements.define("sheet-style", SheetStyle);
