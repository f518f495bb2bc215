/**
 * Text of boxes and logs may be made to deceive: control characters, escape codes and
 * marks that turn the direction of what follows are shown as signs of their own.
 */

// Controls but for tab and newline, marks of direction, what has no width, and
// separators of lines. The regular expression is made of code points, so that this
// file has none of them.
const hidden = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb]", "g");

/** visible returns text in which nothing is hidden. */
export function visible(text: string): string {
  return text.replace(hidden, (sign) => {
    const code = sign.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

/** How much of a text is shown before it is asked for. */
export const shown = 4096;

/** plain returns what a command printed without the codes that colour it. */
export function plain(text: string): string {
  return text.replace(/\x1b\[[0-9;:]*m/g, "").replace(/\r(?=\n|$)/g, "");
}
