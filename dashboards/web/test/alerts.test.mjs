// Alerts and the forecast in the page, of a daemon whose answers are given.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { axe, browser, open, text } from "./auditor.mjs";
import { stub } from "./stub.mjs";

const axeSource = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const begin = Math.floor(Date.now() / 1000) - 600;
const at = (s) => new Date((begin + s) * 1000).toISOString();
const clock = (s) => at(s).slice(11, 19);
const hostile = `<img src=x onerror="globalThis.harmed=1">`;

/** summary has a budget that is spent by 1 % a second. */
function summary(s, budget = {}) {
  const window = { window: "10s", from: at(s - 10), to: at(s), arrivals: 900, attributable: 900, verified: 900, claimed: 0, unattributable: {}, coverage: 1, load_factor: 1.1, arrivals_per_second: 90, originals_per_second: 80, answers_per_second: 90, responses: { answers: 900, visibility: 1, dead_share: 0, dead_seconds: 0, goodput_per_second: 80 } };
  const consumed = Math.min(0.2 + s / 1000, 0.9);
  return {
    at: at(s), state: "ready", coverage: 1, complete_until: at(s - 60), provisional: true, warming: false, sampling: null, scope_split: false,
    dependencies: [{
      dependency: "seats", warming: false, complete_until: at(s - 60), read_share: 1, sampling: null, scope_split: false, windows: [window], closed_windows: [],
      verdict: { kind: "quiet", load_factor: 1.1, usual_load_factor: 1.2, demand: 1, re_ask: false, hidden_repeats_suspected: false, blind: false },
      budgets: [{ dependency: "seats", route: "", model: "ratio", allowance: 100, spent: 100 * consumed, consumed, consumed_high: consumed, state: "low", exhausts_in_seconds: 60, peak_consumed: consumed, exhausted_at: null, ...budget }],
    }],
  };
}

const alert = (name, more) => ({
  alert: name, labels: { dependency: "seats", model: "ratio", severity: "critical" }, state: "firing", inhibited: false, told: true, value: 10, summary: `seats: ${name} is so`, description: "This is what it means.",
  runbook_url: `https://runbooks.example/${name}.md`, since: at(180), fired_at: at(200), resolved_at: null, ...more,
});
const answer = {
  at: at(600), state: "ready", coverage: 0.9, complete_until: at(540), provisional: true, warming: false, sampling: null, scope_split: false, evaluated: true, share: false, past_from: at(-200),
  past: [
    alert("CoverageTooLow", { state: "resolved", since: at(10), fired_at: at(20), resolved_at: at(100), labels: { dependency: "seats", severity: "warning" } }),
    alert("DeadAnswers", { state: "resolved", since: at(-400), fired_at: at(-390), resolved_at: at(-100), labels: { dependency: hostile, severity: "critical" } }),
  ],
  alerts: [
    alert("CoverageTooLow", { state: "resolved", since: at(10), fired_at: at(20), resolved_at: at(100), labels: { dependency: "seats", severity: "warning" } }),
    alert("AuditorBlind", { state: "pending", since: at(590), fired_at: null, told: false, summary: hostile, runbook_url: "javascript:globalThis.harmed=1", labels: { source: hostile, severity: "warning" } }),
    alert("RetryBudgetLow", { inhibited: true, told: false, since: at(170), fired_at: at(190), labels: { dependency: "seats", model: "ratio", severity: "warning" } }),
    alert("RetryBudgetExhausted", {}),
  ],
  sinks: [{ sink: "alertmanagers[0]", taken: 12, failed: 0, dropped: 0, error: null }, { sink: "webhooks[0]", taken: 1, failed: 3, dropped: 1, error: "it answers 404 Not Found" }],
};

describe("alerts and the forecast", { timeout: 240_000 }, () => {
  let chromium, daemon, page, whole, alerts = answer;
  before(async () => {
    [chromium, daemon] = await Promise.all([browser(), stub({ alerts: () => alerts })]);
    ({ page, whole } = await open(chromium, daemon.url + "?dependency=seats"));
    await daemon.streaming;
    for (let s = 1; s <= 600; s++) await daemon.send(summary(s));
  });
  after(async () => {
    await chromium?.close();
    daemon?.stop();
  });

  it("lists what fires first, with what it means, since when, and who was told", async () => {
    await page.keyboard.press("1"); // asks anew
    await text(page, "#alerts", /RetryBudgetExhausted/);
    const items = await page.locator("#alerts li").allInnerTexts();
    assert.deepEqual(items.map((x) => x.match(/^(\w+), (\w+): (\w+)/).slice(1, 4).join(" ")), ["FIRES critical RetryBudgetExhausted", "FIRES warning RetryBudgetLow", "pending warning AuditorBlind", "resolved warning CoverageTooLow"]);
    assert.match(items[0], new RegExp(`seats: RetryBudgetExhausted is so\\s+This is what it means\\. since ${clock(180)}, fired ${clock(200)}; told\\.$`));
    assert.match(items[1], /nobody is told: a worse one says enough\.$/);
    assert.match(items[2], /; not told yet\.$/);
    assert.match(items[3], new RegExp(`resolved ${clock(100)}; told\\.$`));
    assert.equal(await page.locator("#alerts a", { hasText: "RetryBudgetExhausted" }).getAttribute("href"), "https://runbooks.example/RetryBudgetExhausted.md");
    assert.match(await page.locator("#alerts table").last().innerText(), /webhooks\[0\]\s+1\s+3\s+1\s+it answers 404 Not Found/);
    const before = await page.locator("#alerts table").first().locator("tbody tr").allInnerTexts();
    assert.deepEqual(before, [`DeadAnswers\tdependency ${hostile}\t${clock(-390)}\t${clock(-100)}`], "what is listed above is not there again");
    assert.match(await page.locator("#alerts .note").textContent(), new RegExp(`since ${clock(-200)}; coverage 90\\.0 %`));
    assert.equal(await page.locator("#alerts img, #alerts a[href^=javascript]").count(), 0);
    assert.ok((await page.locator("#alerts li").nth(2).innerText()).includes(hostile));
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    await axe(page, axeSource);
    whole();
  });

  it("marks in every chart when they fired, in words under the crosshair", async () => {
    await daemon.send(summary(601));
    await text(page, "#load .when", new RegExp(`${clock(601)} UTC · RetryBudgetLow, RetryBudgetExhausted fire$`));
    await page.locator("#load .plot").focus();
    const back = async (n) => { // PageUp goes ten seconds
      for (let i = 0; i < Math.floor(n / 10); i++) await page.keyboard.press("PageUp");
      for (let i = 0; i < n % 10; i++) await page.keyboard.press("ArrowLeft");
    };
    await page.keyboard.press("End");
    await back(601 - 195);
    for (const id of ["load", "answers", "dead", "budget", "coverage"]) assert.match(await page.locator(`#${id} .when`).textContent(), new RegExp(`${clock(195)} UTC · RetryBudgetLow fires$`), id);
    await back(95);
    assert.match(await page.locator("#load .when").textContent(), new RegExp(`${clock(100)} UTC$`), "what was resolved fires no more");
    await back(50);
    assert.match(await page.locator("#load .when").textContent(), new RegExp(`${clock(50)} UTC · CoverageTooLow fires$`));
    await page.keyboard.press("Escape");
    whole();
  });

  /** ahead counts what is painted of the forecast: pixels of its colour right of what is newest. */
  const ahead = () => page.evaluate(() => {
    const canvas = document.querySelector("#budget canvas"), { width, height } = canvas;
    const bad = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim().match(/\w\w/g).map((x) => parseInt(x, 16));
    const right = canvas.getContext("2d").getImageData(Math.round(width * 0.92), Math.round(height * 0.27), Math.round(width * 0.08), Math.round(height * 0.5)).data;
    let n = 0;
    for (let i = 0; i < right.length; i += 4) if (right[i + 3] > 200 && bad.every((c, k) => Math.abs(right[i + k] - c) < 24)) n++;
    return n;
  });

  it("draws the budget's way to its end beyond now, and nothing when it does not rise", async () => {
    await daemon.send(summary(602));
    await text(page, "#status", new RegExp(clock(602)));
    await text(page, "#budget .note", new RegExp(`low, gone in 60 s, at ${clock(662)}\\.$`));
    const rising = await ahead();
    for (const [s, flat] of [[603, { exhausts_in_seconds: null }], [604, { consumed: 1.2, exhausts_in_seconds: null, state: "exhausted" }]]) {
      await daemon.send(summary(s, flat));
      await text(page, "#status", new RegExp(clock(s)));
      assert.doesNotMatch(await page.locator("#budget .note").textContent(), /gone/);
      if (s === 603) { // at the same scale
        const n = await ahead();
        assert.ok(n === 0 && rising > 15, `${rising} pixels of a forecast, and ${n} without one`);
      }
    }
    whole();
  });

  it("knows of no alert where nobody evaluates any, and ends what is told of no more", async () => {
    alerts = { ...answer, at: at(610), alerts: answer.alerts.filter((x) => x.alert !== "RetryBudgetExhausted") };
    await page.keyboard.press("1");
    await page.waitForFunction(() => !document.querySelector("#alerts").textContent.includes("RetryBudgetExhausted"));
    await daemon.send(summary(611));
    await text(page, "#load .when", new RegExp(`${clock(611)} UTC · RetryBudgetLow fires$`));
    alerts = { ...answer, evaluated: false, alerts: [] };
    await page.keyboard.press("1");
    await text(page, "#alerts", /Nobody evaluates alerts in this instance: an empty list would say nothing\./);
    whole();
  });
});
