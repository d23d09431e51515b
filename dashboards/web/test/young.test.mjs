// The page where little is known yet, and where the browser's clock is wrong: what is not
// known is said to be that, and is of the daemon's time.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditor, axe, browser, open, text } from "./auditor.mjs";
import { stub } from "./stub.mjs";

const axeSource = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const config = `dependency: inventory
sources: [{file: {paths: [access.log], follow: true}, format: json}]
keys: {accept: [idempotency-key]}
store: {sqlite: auditor.db}
api: {listen: "127.0.0.1:0"}
`;
const charts = ["load", "answers", "dead", "budget", "coverage"];

describe("the page of a daemon that has just started", { timeout: 120_000 }, () => {
  let chromium, daemon, dir, page, whole;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), "auditor-page-"));
    await writeFile(join(dir, "auditor.yaml"), config);
    await writeFile(join(dir, "access.log"), "");
    [chromium, daemon] = await Promise.all([browser(), auditor(["run", "--config", join(dir, "auditor.yaml")], /figures at (http:\/\/[\d.:]+\/)/)]);
    ({ page, whole } = await open(chromium, daemon.url));
  });
  after(async () => {
    await chromium?.close();
    await daemon?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it("says that there are no records, and how the sources are", async () => {
    await text(page, "#verdict-word", /^No records yet$/);
    await text(page, "#sources tbody", /access\.log.*reading/);
    await text(page, "#alerts", /No alert is pending or fires\.|FIRES|pending/);
    for (const id of ["reasons", "hops", "per-question", "retries", "peers", "originators", "routes", "questions", "policy"]) await text(page, `#${id} .scroll`, /^No records yet\.$/);
    for (const id of charts) {
      assert.equal(await page.locator(`#${id} .nothing`).textContent(), "No data in this range.");
      assert.doesNotMatch(await page.locator(`#${id} .readout`).textContent(), /\d/, "nothing is read out of no moment");
    }
    assert.equal(await page.locator("#verdict").getAttribute("class"), "unknown");
    await axe(page, axeSource);
    whole();
  });

  it("does not take what is not final for nothing", async () => {
    const line = (i, took) => JSON.stringify({ time: new Date().toISOString(), method: "GET", path: "/a/1", status: 503, duration_ms: took, bytes_sent: 10, peer: "p", idempotency_key: "k" + i }) + "\n";
    await appendFile(join(dir, "access.log"), line(0, 1) + line(0, 2) + line(0, 3) + line(1, 4));
    await text(page, "#verdict-word", /^Too little to judge$/);
    assert.equal(new URL(page.url()).searchParams.get("dependency"), "inventory");
    await text(page, "#verdict-why", /^inventory: 4 arrivals in 10 s\.$/);
    await text(page, "#tiles", /final minute–no second is final yet/);
    await text(page, "#tiles", /Budget at its worst–no reading yet/);
    await text(page, "#tiles", /Dead answers–– of work for nobody; 0 % visible/);
    for (const id of ["reasons", "hops", "per-question", "retries"]) await text(page, `#${id} .scroll`, /^(Nothing is final yet: seconds are when what was slow in them is logged, too|No arrivals in what is final of this range)\.$/);
    assert.doesNotMatch(await page.locator("#reasons").textContent(), /of 0 arrivals|No arrivals\.|–/);
    await text(page, "#peers tbody", /^p2\.00×/);
    whole();
  });

  it("reads a range whichever way round it stands, and shows the present where there is none", async () => {
    const day = (h) => `2026-11-30T${h}:00:00.000Z`;
    const { page, whole } = await open(chromium, daemon.url + `?dependency=inventory&range=abs&from=${day(12)}&to=${day(11)}`);
    await text(page, "#reasons .scroll", /^(Nothing is final yet|No arrivals in what is final)/);
    assert.deepEqual(await page.locator("#absolute input").evaluateAll((all) => all.map((x) => x.value)), ["2026-11-30T11:00", "2026-11-30T12:00"]);
    for (const id of charts.slice(0, 3)) await text(page, `#${id} .nothing`, /^No data in this range\.$/);
    await page.goto(daemon.url + `?dependency=inventory&range=abs&from=${day(12)}&to=${day(12)}`);
    await text(page, "#ranges [aria-current]", /^Live$/);
    await page.locator("[name=from]").fill(day(14).slice(0, 19));
    await page.locator("[name=to]").fill(day(13).slice(0, 19));
    await page.locator("#absolute button").click();
    await page.waitForFunction(() => location.search.includes("range=abs"));
    assert.equal(new URL(page.url()).searchParams.get("from"), day(13));
    whole();
    await page.context().close();
  });
});

describe("a browser whose clock is an hour off", { timeout: 120_000 }, () => {
  let chromium;
  const asked = [];
  const now = Math.floor(Date.now() / 1000), at = (s) => new Date((now + s) * 1000).toISOString();
  const meta = { at: at(0), state: "ready", coverage: 1, complete_until: at(-60), provisional: true, warming: false, sampling: null };
  const api = { series: (q) => { asked.push(Object.fromEntries(q)); return { ...meta, from: at(-900), to: at(0), step_seconds: 60, total: {}, series: [] }; }, top: (q) => { asked.push(Object.fromEntries(q)); return { ...meta, from: at(-900), to: at(0), parts: [], questions: [], left_out: 0 }; } };
  before(async () => { chromium = await browser(); });
  after(() => chromium?.close());

  for (const off of [-3600, 3600]) {
    it(`asks and says the daemon's time (${off} s)`, async () => {
      asked.length = 0;
      const daemon = await stub(api);
      const context = await chromium.newContext();
      const page = await context.newPage();
      await page.addInitScript((off) => {
        const real = Date;
        globalThis.Date = class extends real {
          constructor(...args) { if (args.length > 0) super(...args); else super(real.now() + off * 1000); }
          static now() { return real.now() + off * 1000; }
        };
      }, off);
      await page.goto(daemon.url + "?dependency=seats&range=15m");
      await daemon.streaming;
      await daemon.send({ ...meta, dependencies: [] });
      await text(page, "#status", new RegExp(`^Connected · ready · ${at(0).slice(11, 19)} UTC$`));
      await text(page, "#peers .scroll", /^No arrivals in this range\.$/);
      const ranges = new Set(asked.filter((q) => q.from !== undefined).map((q) => `${q.from} ${q.to}`));
      assert.deepEqual([...ranges], ["-900s now"], "the daemon knows what is now");
      const inputs = await page.locator("#absolute input").evaluateAll((all) => all.map((x) => Date.parse(x.value + "Z") / 1000));
      assert.ok(Math.abs(inputs[1] - now) < 60 && inputs[1] - inputs[0] === 900, `from ${inputs[0] - now} to ${inputs[1] - now} s`);
      await daemon.hangUp();
      await text(page, "#status", /^NO CONNECTION/);
      const [h, m] = (await page.locator("#status").textContent()).match(/since (\d\d):(\d\d)/).slice(1).map(Number);
      const late = (h * 60 + m - Math.floor((now % 86400) / 60) + 1440) % 1440;
      assert.ok(late <= 2, `it is gone since ${late} minutes after now`);
      await context.close();
      daemon.stop();
    });
  }
});
