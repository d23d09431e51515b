// Builds the page into dist/: one script, one stylesheet, and the HTML that loads
// them. Nothing in them is loaded from elsewhere.
import { build } from "esbuild";
import { copyFile, readFile } from "node:fs/promises";

// uPlot's licence goes where its code goes.
const licence = `/*! uPlot: ${await readFile("node_modules/uplot/LICENSE", "utf8")}*/`;

await build({
  entryPoints: { page: "src/main.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  banner: { js: licence, css: licence },
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await copyFile(`src/${name}`, `dist/${name}`);
