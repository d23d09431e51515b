// The report in HTML, in the browser that opens it: of a log whose names want to harm
// who reads it, and of one that shows a storm.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { axe, browser, open, program } from "./auditor.mjs";

const axeSource = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

const config = `dependency: {field: dependency}
sources: [{file: {paths: [access.log]}, format: json}]
keys: {accept: [idempotency-key]}
time: {lateness: 30s}
`;
const dependency = `<b onclick="harm()">it</b>`;
const route = `<img src=x onerror="globalThis.harmed=1">`;
const peer = `"><script>globalThis.harmed=1</script><svg/onload=globalThis.harmed=1>`;
const other = `</style></title><style>*{display:none}</style>javascript:globalThis.harmed=1`;

/** lines are ten minutes, in which questions come again and again from the third to the sixth, and a pause without any. */
function lines() {
  const out = [];
  for (let s = 0; s < 660; s++) {
    if (s >= 420 && s < 500) continue;
    for (let try_ = 0; try_ < (s >= 180 && s < 360 ? 4 : 1); try_++) {
      for (const [i, name] of [route, other].entries()) {
        out.push(JSON.stringify({
          time: new Date(Date.UTC(2026, 2, 3, 12, 0, s, try_ * 200)).toISOString(), dependency, route: name, method: "GET", path: `/p/${s}`, status: 503, duration_ms: 5, bytes_sent: 1,
          client_gone: false, peer, ...(s % 10 < 9 ? { idempotency_key: `k${s}-${i}` } : {}),
        }));
      }
    }
  }
  return out.join("\n") + "\n";
}

describe("the report in HTML", { timeout: 120_000 }, () => {
  let chromium, dir, file, shown;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), "auditor-report-"));
    await writeFile(join(dir, "auditor.yaml"), config);
    await writeFile(join(dir, "access.log"), lines());
    const { stdout } = await promisify(execFile)(program, ["replay", "--config", join(dir, "auditor.yaml"), "--output", "html"], { maxBuffer: 1 << 26 });
    file = join(dir, "report.html");
    await writeFile(file, stdout);
    chromium = await browser();
    shown = (options) => open(chromium, pathToFileURL(file).href, options);
  });
  after(async () => {
    await chromium?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it("runs nothing and loads nothing, whatever names are in the log", async () => {
    // Whoever could smuggle a script or an image into the file would still be refused.
    const smuggled = join(dir, "smuggled.html");
    await writeFile(smuggled, (await readFile(file, "utf8")).replace("<main>", `<main><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" onerror="globalThis.harmed=1"><script>globalThis.harmed=1</script><p id="styled" style="color: red">x</p>`));
    const context = await chromium.newContext();
    const page = await context.newPage();
    const refused = [];
    page.on("console", (m) => refused.push(m.text()));
    await page.goto(pathToFileURL(smuggled).href);
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    assert.ok(["script", "style", "img"].every((x) => refused.some((r) => r.includes(x + "-src") || r.includes("default-src"))), refused.join("\n"));
    await context.close();

    const asked = [];
    const { page: p, whole } = await shown();
    p.on("request", (r) => asked.push(r.url()));
    await p.reload();
    assert.deepEqual(asked, [pathToFileURL(file).href]);
    assert.equal(await p.evaluate(() => globalThis.harmed), undefined);
    assert.equal(await p.locator("img, script, iframe, b[onclick], main style, [onload], [onerror]").count(), 0);
    const names = await p.locator(".name").allTextContents();
    for (const name of [dependency, route, peer]) assert.ok(names.includes(name), `${name} is not shown as text: ${names}`);
    assert.ok(names.some((n) => n.startsWith("</style></title>")), "a long name is cut, and shown");
    whole();
    await p.context().close();
  });

  it("says when it began, how bad it was and when it ended, with what that rests on", async () => {
    const { page, whole } = await shown();
    const text = (await page.locator("main").innerText()).replace(/\s+/g, " ");
    assert.match(text, /^Retry storm Load factor/);
    assert.match(text, /One storm, from 2026-03-03 12:03:00 to 12:06:00 UTC \(3 min\)/);
    assert.match(text, /onset 03-03 12:03:00 4\.00× 8\.00 1\.80 90\.0 %/);
    assert.match(text, /end 03-03 12:06:00 1\.00× 2\.00 1\.80 90\.0 %/);
    assert.match(text, /RetryBudgetExhausted/);
    assert.match(text, /Blind: keys prove 0 % of arrivals, and 85\.0 % are wanted/);
    assert.match(text, /unattributable [\d,]+ 10\.0 %/);
    assert.equal(await page.locator("figure").count(), 6);
    assert.equal(await page.locator("#load text.mark", { hasText: "onset" }).count(), 1);
    assert.match(await page.locator("#load .hit title").nth(4).evaluate((e) => e.textContent), /^12:04 UTC: arrivals 8\.00\/s, originals 1\.80\/s, coverage 90\.0 %$/);
    assert.match(await page.locator("#load .hit title").last().evaluate((e) => e.textContent), /, provisional$/);
    whole();
    await page.context().close();
  });

  it("draws what it says, hatches what was not read and what may change, and nothing over the edge", async () => {
    const { page, whole } = await shown();
    const box = (selector) => page.locator(selector).first().evaluate((e) => { const b = e.getBoundingClientRect(); return { x: b.x, y: b.y, width: b.width, height: b.height }; });
    const plot = await box("#load .plot"), line = await box("#load path.line.bad"), gap = await box("#load .band.nothing"), last = await box("#load .band.provisional");
    assert.ok(line.width > 0.99 * plot.width && line.height > 40, JSON.stringify(line));
    // Seconds 420 to 500 were not read; windows are whole minutes, so that one is empty: 60 of 660 s.
    assert.ok(Math.abs(gap.width / plot.width - 60 / 660) < 0.01 && Math.abs((gap.x - plot.x) / plot.width - 420 / 660) < 0.01, JSON.stringify(gap));
    assert.ok(Math.abs(last.width / plot.width - 30 / 660) < 0.01 && Math.abs(last.x + last.width - plot.x - plot.width) < 2, JSON.stringify(last));
    for (const id of ["load", "factor", "answers", "dead", "budget", "coverage"]) {
      const all = await page.locator(`#${id} .plot path`).evaluateAll((l) => l.map((e) => e.getBoundingClientRect().toJSON()));
      const whole = await box(`#${id} .plot`);
      assert.ok(all.every((b) => b.top >= whole.y - 2 && b.bottom <= whole.y + whole.height + 2), `${id} draws outside`);
    }
    whole();
    await page.context().close();
  });

  it("can be read by everybody, dark and light, on a telephone and on paper", async () => {
    const backs = new Set();
    for (const colorScheme of ["dark", "light"]) {
      for (const width of [1280, 390]) {
        const { page, whole } = await shown({ colorScheme, viewport: { width, height: 844 } });
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${width} px, ${colorScheme}`);
        await axe(page, axeSource);
        backs.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
        whole();
        await page.context().close();
      }
    }
    assert.equal(backs.size, 2);

    const { page, whole } = await shown({ colorScheme: "dark" });
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    assert.equal(await page.locator("nav").isVisible(), false);
    // A4 less its margins at 96 dots to the inch: nothing is cut off.
    await page.setViewportSize({ width: 718, height: 1000 });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 718);
    const pdf = (await page.pdf({ format: "A4" })).toString("latin1");
    const pages = pdf.match(/\/Type\s*\/Page\b/g)?.length ?? 0;
    assert.ok(pages >= 2 && pages <= 12, `${pages} pages`);
    whole();
    await page.context().close();
  });
});
