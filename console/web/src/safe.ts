/**
 * Text of boxes and logs may be made to deceive: control characters, escape codes, marks that
 * turn the direction of what follows and what is drawn as nothing are shown as signs of their own.
 */

// Controls but for tab and newline, separators of lines, what is drawn as nothing, such as marks of direction and tags, and
// marks of annotations. Selectors of variants (U+FE00 to U+FE0F) stay: many signs of pictures have one.
const hidden = /(?![\t\n\ufe00-\ufe0f])[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

// The names of the controls below the space. Their own signs (U+2400 and on) are in few fonts.
const names = "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(
  " ",
);

/** visible returns text in which nothing is hidden. */
export function visible(text: string): string {
  return text.replace(hidden, (sign) => {
    const code = sign.codePointAt(0)!;
    return `\u27e8${names[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}\u27e9`;
  });
}

/** How much of a text is shown before it is asked for. */
export const shown = 4096;

/** plain returns what a command printed without the codes that colour it. */
export function plain(text: string): string {
  return text.replace(/\x1b\[[0-9;:]*m/g, "").replace(/\r(?=\n|$)/g, "");
}
