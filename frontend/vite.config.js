// One bundle: page.js is a module that a report inlines, a server sends and a notebook imports; page.css is its look.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: process.env.GLOBECE_BUNDLE ?? "../src/globece/page/bundle",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: "src/main.ts",
      preserveEntrySignatures: "strict",
      output: { format: "es", entryFileNames: "page.js", assetFileNames: "page[extname]", codeSplitting: false },
    },
  },
});
