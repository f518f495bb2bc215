import { defineConfig, type Plugin } from "vite";

/**
 * xterm writes style elements and style attributes, which the policy of the page
 * forbids. This has it make the element sheet-style instead (src/sheet.ts), and set
 * styles as properties, which is allowed. A version that is written otherwise fails
 * the build.
 */
function xtermWithoutInlineStyles(): Plugin {
  return {
    name: "xterm-without-inline-styles",
    enforce: "pre",
    transform(code, id) {
      if (!/@xterm\/xterm\/lib\/xterm\.mjs$/.test(id)) return null;
      const [element, attribute] = [/\.createElement\("style"\)/g, /(\w+)\.setAttribute\("style",(`[^`]*`)\)/g];
      const [elements, attributes] = [element, attribute].map((pattern) => code.match(pattern)?.length);
      if (elements !== 3 || attributes !== 1)
        this.error(`xterm makes ${elements} style elements and sets ${attributes} style attributes, not 3 and 1`);
      return { code: code.replace(element, '.createElement("sheet-style")').replace(attribute, "$1.style.cssText=$2"), map: null };
    },
  };
}

// Paths in the built files are relative: a server may have the console below a
// prefix. The names have the hashes of what they hold, and nothing else that
// differs from one build to the next.
export default defineConfig({
  base: "./",
  plugins: [xtermWithoutInlineStyles()],
  build: {
    outDir: "../dist",
    emptyOutDir: false, // the placeholder stays; mk/console.mk removes the rest
    assetsInlineLimit: 0,
    cssCodeSplit: false, // a style sheet of its own for a page that is loaded later would be asked for only once
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1024,
  },
});
