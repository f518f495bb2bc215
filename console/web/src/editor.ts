/** The editor of statements: CodeMirror in a shadow tree, where its styles are sheets that the policy of the page allows. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql, SQLDialect } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// The colors are custom properties of the page, which shadow trees see.
const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--field)", fontSize: "14px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", minHeight: "8em" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--quiet)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--chosen)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
});
const highlight = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
]);
const dialect = SQLDialect.define({
  keywords:
    "select with from prewhere where group by having order limit offset union intersect except all distinct on as and or not in like ilike between is null case when then else end asc desc nulls first last join left right inner full cross array final sample over partition window qualify interval cast exists using rollup cube totals fill",
  doubleQuotedStrings: false,
  backslashEscapes: true,
  identifierQuotes: '`"',
});

// Chromium itself, where a key replaces what is selected, writes a style attribute to
// keep the look of the text. That the policy refuses, so the editor replaces it.
const replace = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.data === null || view.composing || view.state.selection.main.empty) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type" });
    return true;
  },
});

/** Editor is an editor in a part of the page. */
export class Editor {
  readonly #view: EditorView;
  readonly #language = new Compartment();
  readonly #dark = new Compartment();

  constructor(
    parent: HTMLElement,
    text: string,
    { label, change, run }: { label: string; change: (text: string) => void; run: () => void },
  ) {
    const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
    const enter = { key: "Mod-Enter", run: () => (run(), true) };
    this.#view = new EditorView({
      root,
      parent: root as unknown as Element,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          replace,
          bracketMatching(),
          closeBrackets(),
          autocompletion(),
          look,
          syntaxHighlighting(highlight),
          EditorView.lineWrapping,
          Prec.highest(keymap.of([enter])),
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
          EditorView.contentAttributes.of({ "aria-label": label }),
          this.#language.of(this.#sql([])),
          this.#dark.of([]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) change(update.state.doc.toString());
          }),
        ],
      }),
    });
  }

  #sql(columns: string[]) {
    return sql({ dialect, upperCaseKeywords: true, schema: { otel_logs: columns }, defaultTable: "otel_logs" });
  }

  /** Has the columns of the table completed. */
  setColumns(columns: string[]): void {
    this.#view.dispatch({ effects: this.#language.reconfigure(this.#sql(columns)) });
  }

  /** Tells whether the page is dark. */
  setDark(dark: boolean): void {
    this.#view.dispatch({ effects: this.#dark.reconfigure(EditorView.darkTheme.of(dark)) });
  }

  /** Puts text in place of what is selected. */
  insert(text: string): void {
    this.#view.dispatch(this.#view.state.replaceSelection(text));
    this.#view.focus();
  }

  /** Takes the editor out of the page. */
  close(): void {
    this.#view.destroy();
  }
}
