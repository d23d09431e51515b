// Builds the page into dist/: one script, one stylesheet, and the HTML that loads
// them. Nothing in them is loaded from elsewhere.
import { build } from "esbuild";
import { copyFile } from "node:fs/promises";

await build({
  entryPoints: { page: "src/main.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "eof",
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await copyFile(`src/${name}`, `dist/${name}`);
