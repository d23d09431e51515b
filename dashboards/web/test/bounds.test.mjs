// Figures that are bounds: of answers whose readers could not all be seen. They are told
// from exact ones in the tile, in the readout, below the chart and on the line itself.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { axe, browser, open, text } from "./auditor.mjs";
import { stub } from "./stub.mjs";

const axeSource = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const begin = Math.floor(Date.now() / 1000) - 600;
const at = (s) => new Date((begin + s) * 1000).toISOString();
const clock = (s) => at(s).slice(11, 19);

const judged = { visibility: 1, unjudged: 0, untimed: 0, dead_share: 0.25, dead_seconds: 4, goodput_per_second: 40 };
const unseen = { ...judged, visibility: 0.6 };
const timeless = { ...judged, unjudged: 7, untimed: 9 };
const dark = { ...judged, visibility: 0, dead_share: 0, dead_seconds: 0 };

function summary(s, responses) {
  const window = { window: "10s", from: at(s - 10), to: at(s), arrivals: 900, attributable: 900, verified: 900, claimed: 0, unattributable: {}, coverage: 1, load_factor: 1.1, arrivals_per_second: 90, originals_per_second: 80, answers_per_second: 90, responses: { answers: 900, ...responses } };
  return {
    at: at(s), state: "ready", coverage: 1, complete_until: at(s - 60), provisional: true, warming: false, sampling: null, scope_split: false,
    dependencies: [{
      dependency: "seats", warming: false, complete_until: at(s - 60), read_share: 1, sampling: null, scope_split: false, windows: [window], closed_windows: [], budgets: [],
      verdict: { kind: "quiet", load_factor: 1.1, usual_load_factor: 1.2, demand: 1, re_ask: false, hidden_repeats_suspected: false, blind: false },
    }],
  };
}

/** series is a stored answer whose points are these, one a minute. */
function series(all) {
  const points = all.map((r, i) => r && ({
    at: at(60 * i), coverage: 1, provisional: false,
    values: { arrivals: 5400, originals: 4800, load_factor: 1.1, verified: 5400, attributable: 5400, coverage: 1, "responses.answers": 5400, ...Object.fromEntries(Object.entries(r).map(([k, v]) => ["responses." + k, v])) },
  }));
  return { at: at(600), state: "ready", coverage: 1, complete_until: at(540), provisional: false, warming: false, sampling: null, from: at(0), to: at(60 * all.length), step_seconds: 60, total: {}, series: [{ dependency: "seats", name: "", points: points.filter(Boolean) }] };
}

describe("bounds in the charts", { timeout: 120_000 }, () => {
  let chromium, daemon, page, whole, stored = () => series([]);
  before(async () => {
    [chromium, daemon] = await Promise.all([browser(), stub({ series: (q) => stored(q) })]);
    ({ page, whole } = await open(chromium, daemon.url + "?dependency=seats"));
    await daemon.streaming;
  });
  after(async () => {
    await chromium?.close();
    daemon?.stop();
  });

  let now = 0;
  /** tell sends so many seconds, and waits until they are shown. */
  const tell = async (seconds, responses) => {
    for (let i = 0; i < seconds; i++) await daemon.send(summary(++now, responses));
    await text(page, "#status", new RegExp(clock(now)));
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  };
  /** marks counts what is on a line's chart in a colour, in each half of the plot. */
  const marks = (id, colour) => page.evaluate(([id, colour]) => {
    const canvas = document.querySelector(`#${id} canvas`), over = document.querySelector(`#${id} .u-over`).getBoundingClientRect(), at = canvas.getBoundingClientRect();
    const data = canvas.getContext("2d").getImageData(over.left - at.left, over.top - at.top, over.width, over.height), want = getComputedStyle(document.documentElement).getPropertyValue(colour).trim().match(/\w\w/g).map((x) => parseInt(x, 16));
    const halves = [0, 0];
    for (let i = 0; i < data.data.length; i += 4) if (data.data[i + 3] > 250 && want.every((c, k) => Math.abs(data.data[i + k] - c) < 4)) halves[Number((i / 4) % data.width > data.width / 2)]++;
    return halves;
  }, [id, colour]);
  const shown = async (id) => [await page.locator(`#${id} .readout b`).first().textContent(), await page.locator(`#${id} .readout b`).nth(1).textContent(), await page.locator(`#${id} .doubts`).isVisible()];

  it("are none where all could be judged", async () => {
    await tell(120, judged);
    assert.deepEqual(await shown("dead"), ["25.0 %", "100 %", false]);
    assert.deepEqual(await shown("answers"), ["90/s", "40/s", false]);
    assert.match(await page.locator("#tiles").textContent(), /Dead answers25\.0 %4 s of work for nobody; 100 % visible/);
    whole();
  });

  it("are marked where records show no departure, and where a deadline has no time to judge it by", async () => {
    const before = { dead: await marks("dead", "--c-bad"), answers: await marks("answers", "--c-good") };
    await tell(120, unseen);
    assert.deepEqual(await shown("dead"), ["≥ 25.0 %", "60.0 %", true]);
    assert.deepEqual(await shown("answers"), ["90/s", "≤ 40/s", true]);
    assert.match(await page.locator("#tiles").textContent(), /Dead answers≥ 25\.0 %≥ 4 s of work for nobody; 60\.0 % visible/);
    assert.match(await page.locator("#dead .doubts").textContent(), /^▲ dead is at least \(≥\) what is drawn: some records there show no departure, or have a deadline and no time to judge it by\.$/);
    assert.match(await page.locator("#answers .doubts").textContent(), /^▼ goodput is at most \(≤\) what is drawn/);
    // The second half of the time has marks now, and the first has the line alone.
    for (const [id, colour] of [["dead", "--c-bad"], ["answers", "--c-good"]]) {
      const [left, right] = await marks(id, colour);
      assert.ok(left <= before[id][0] + 20 && right > left + 60, `${id}: ${left} dots of the line where it is exact, ${right} with its marks; before ${before[id]}`);
    }
    // The crosshair says of each moment what it is.
    await page.locator("#dead .plot").focus();
    await page.keyboard.press("Home");
    assert.deepEqual(await shown("dead"), ["25.0 %", "100 %", true]);
    await page.keyboard.press("End");
    assert.deepEqual(await shown("answers"), ["90/s", "≤ 40/s", true]);
    await page.keyboard.press("Escape");
    await tell(1, timeless);
    assert.deepEqual(await shown("dead"), ["≥ 25.0 %", "100 %", true]);
    assert.match(await page.locator("#tiles").textContent(), /Dead answers≥ 25\.0 %≥ 4 s of work for nobody; 100 % visible/);
    await axe(page, axeSource);
    whole();
  });

  it("are no zero where nothing could show a departure", async () => {
    await tell(1, dark);
    assert.equal((await shown("dead"))[1], "0 %");
    assert.match(await page.locator("#tiles").textContent(), /Dead answers–– of work for nobody; 0 % visible/);
    await page.locator("#dead .plot").focus();
    await page.keyboard.press("End");
    assert.deepEqual((await shown("dead")).slice(0, 2), ["–", "0 %"]);
    await page.keyboard.press("Escape");
    whole();
  });

  it("are marked in stored figures, too, and a point between two gaps is seen", async () => {
    stored = () => series([judged, judged, null, unseen, null, dark, timeless, judged, judged, judged]);
    await page.keyboard.press("3");
    await text(page, "#dead .when", new RegExp(clock(600)));
    assert.deepEqual(await shown("dead"), ["25.0 %", "100 %", true]);
    await page.locator("#dead .plot").focus();
    const read = [];
    await page.keyboard.press("Home");
    for (let i = 0; i < 10; i++) {
      read.push((await shown("dead"))[0]);
      await page.keyboard.press("ArrowRight");
    }
    assert.deepEqual(read, ["25.0 %", "25.0 %", "–", "≥ 25.0 %", "–", "–", "≥ 25.0 %", "25.0 %", "25.0 %", "25.0 %"]);
    await page.keyboard.press("Escape");
    stored = () => series([null, null, judged, null, null, null, null, null, null, null]);
    await page.keyboard.press("2");
    await page.waitForFunction(() => document.querySelector("#dead .doubts").hidden);
    const [left, right] = await marks("dead", "--c-bad");
    assert.ok(left > 8 && right === 0, `a point alone is ${left} dots`);
    whole();
  });
});
