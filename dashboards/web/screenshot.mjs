// Takes the README's pictures of the page: of a demo in its second storm, when it is
// warm and has something to compare with.

import { browser, demo, open, text } from "./test/auditor.mjs";

const [dir] = process.argv.slice(2);
const daemon = await demo();
const chromium = await browser();
try {
  const { page } = await open(chromium, daemon.url + "?dependency=seats", { viewport: { width: 1280, height: 800 } });
  await text(page, "#verdict-word", /^Retry storm/);
  await text(page, "#verdict-word", /^Quiet/, 120_000);
  await text(page, "#verdict-word", /^Retry storm/, 120_000);
  await text(page, "#trust", /^Of what could be attributed/);
  await text(page, "#verdict-why", /brings \d\d/);
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((name) => document.documentElement.dataset.theme === name, colorScheme);
    await page.screenshot({ path: `${dir}/page-${colorScheme}.png` });
  }
} finally {
  await chromium.close();
  await daemon.stop();
}
