// The page beside the demo: quiet, a storm, and everything that one does then.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { axe, browser, demo, open, text } from "./auditor.mjs";

const axeSource = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

describe("the page during a storm", { timeout: 240_000 }, () => {
  let chromium, daemon, page, whole;
  before(async () => {
    [chromium, daemon] = await Promise.all([browser(), demo()]);
    ({ page, whole } = await open(chromium, daemon.url + "?dependency=seats"));
  });
  after(async () => {
    await chromium?.close();
    await daemon?.stop();
  });

  it("says when there is one, and who makes it", async () => {
    await text(page, "#verdict-word", /^Quiet$/);
    assert.equal(await page.locator("#verdict").getAttribute("class"), "good");
    await text(page, "#verdict-word", /^Retry storm/);
    assert.equal(await page.locator("#verdict").getAttribute("class"), "bad");
    await text(page, "#verdict-why", /^seats: each original brings [\d.]+ arrivals, so [\d.]+ % are repeats/);
    await text(page, "#who", /Silence peer (bff|mobile-api): −[\d.]+\/s \(coverage 100 %\)\. Silence route GET \/seats\/\{id\}: −[\d.]+\/s \(coverage \d\d/);
    await text(page, "#tiles", /Load factor[2-9]\.\d\d×|Load factor\d\d\.\d\d×/);
    await text(page, "#tiles", /Coverage9\d\.\d %/);
    await text(page, "#tiles", /Retry budgetnoneexhausted/);
    assert.match(await page.title(), /^Retry storm/);
    await text(page, "#dependencies", /pricesQuiet/);
    await text(page, "#budget .note", /^Now: [\d,]+ of [\d.]+ \(ratio\), exhausted, \d+ % spent\.$/);
    await text(page, "#load .readout", /arrivals \d+.*originals \d+.*coverage 9\d/);
    await text(page, "#sources", /access-logs.*reading/);
    await text(page, "#hops", /The caller next to us makes[123]\.\d\d×/);
    await text(page, "#policy", /Chosen1\.20× · measured is ABOVE/);
    await text(page, "#alerts", /FIRES, critical: RetryBudgetExhausted \(dependency seats, model ratio\) seats: the retry budget is spent .* since \d\d:\d\d:\d\d, fired \d\d:\d\d:\d\d/);
    await text(page, "#load .when", /UTC · .*RetryBudgetExhausted.* fires?$/);
    whole();
  });

  it("says on the page of another dependency where the storm is", async () => {
    const { page, whole } = await open(chromium, daemon.url + "?dependency=prices&range=15m");
    await text(page, "#elsewhere", /^Retry storm elsewhere: seats$/);
    assert.match(await page.title(), /^Retry storm elsewhere · (Quiet|Too little to judge) · prices$/);
    await page.keyboard.press("1");
    assert.equal(await page.locator("#elsewhere a").getAttribute("href"), "?dependency=seats");
    await page.locator("#elsewhere a").click();
    await text(page, "#verdict-why", /^seats: /);
    await text(page, "#elsewhere", /^$/);
    assert.match(await page.title(), /^Retry storm · seats$/);
    whole();
    await page.context().close();
  });

  /** moments is what each chart speaks of, in seconds before what is newest. */
  const moments = () => page.evaluate(() => {
    const seconds = (e) => e.textContent.match(/(\d\d):(\d\d):(\d\d)/).slice(1).reduce((sum, x) => sum * 60 + Number(x), 0);
    const now = seconds(document.querySelector("#status"));
    return [...document.querySelectorAll(".when")].map((e) => (now - seconds(e) + 86400) % 86400);
  });
  const together = (all) => assert.ok(Math.max(...all) - Math.min(...all) <= 1 && Math.min(...all) >= 4, `one moment of the past in all charts: ${all} s ago`);

  it("has one crosshair over all charts, by mouse and by keyboard", async () => {
    const plots = page.locator(".plot .u-over");
    assert.equal(await plots.count(), 5);
    assert.ok(Math.max(...await moments()) <= 3, "without a crosshair the newest is read out");
    const box = await plots.first().boundingBox();
    await page.mouse.move(box.x + box.width * 0.92, box.y + box.height / 2);
    together(await moments());
    const lefts = await page.locator(".u-cursor-x").evaluateAll((all) => all.map((x) => x.classList.contains("u-off") ? "" : x.style.transform));
    assert.ok(lefts.length === 5 && lefts.every((x) => x !== ""), String(lefts));
    await page.mouse.move(0, 0);
    assert.ok(Math.max(...await moments()) <= 3, "the crosshair is let go of");
    await page.locator("#budget .plot").focus();
    await page.keyboard.press("End");
    for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowLeft");
    together(await moments());
    await page.keyboard.press("Escape");
    assert.ok(Math.max(...await moments()) <= 3, "Escape lets go of the crosshair");
    whole();
  });

  it("leads from the dependency to a peer, a route and a question, by addresses that can be shared", async () => {
    await page.locator("#peers a", { hasText: "mobile-api" }).click();
    assert.equal(new URL(page.url()).searchParams.get("peer"), "mobile-api");
    await text(page, "#path", /^seats › peer mobile-api all$/);
    await text(page, "#originators .scroll", /^Of one peer, originators are not counted: /);
    await text(page, "#questions .scroll", /^Of one peer, questions are not listed: /);
    assert.equal(await page.locator(".panel.failed").count(), 0, await page.locator(".panel.failed").allTextContents().then(String));
    await page.locator("#routes a", { hasText: "GET /seats/{id}" }).click();
    await text(page, "#path", /^seats › route GET \/seats\/\{id\} all › peer mobile-api all$/);
    await text(page, "#load .when", /provisional/); // of a part there are stored figures
    await text(page, "#budget .nothing", /^Budgets are read live/);
    await page.keyboard.press("2");
    assert.equal(new URL(page.url()).searchParams.get("range"), "15m");

    const shared = await open(chromium, page.url());
    await text(shared.page, "#path", /^seats › route GET \/seats\/\{id\} all › peer mobile-api all$/);
    assert.equal(await shared.page.locator("#ranges [aria-current]").textContent(), "15 min");
    shared.whole();
    await shared.page.context().close();

    await page.goBack();
    await page.goBack();
    await page.goBack();
    await text(page, "#path", /^$/);
    const question = page.locator("#questions tbody a").first();
    const hash = (await question.getAttribute("data-key"));
    await question.click();
    assert.equal(new URL(page.url()).searchParams.get("question"), hash);
    await text(page, "#question", new RegExp(hash + ".*arrivals\\d+dependencyseats"));
    await page.locator("#question a", { hasText: "Close" }).click();
    assert.equal(await page.locator("#question").isVisible(), false);

    const unknown = await open(chromium, daemon.url + "?dependency=seats&question=" + "0".repeat(32));
    await text(unknown.page, "#question", /Close.*Nothing is known of this question/);
    unknown.whole();
    await unknown.page.context().close();
    whole();
  });

  it("shows each range, and what of it is not final", async () => {
    for (const [key, words] of [["2", "15 min"], ["3", "1 h"], ["4", "24 h"]]) {
      await page.keyboard.press(key);
      assert.equal(await page.locator("#ranges [aria-current]").textContent(), words);
      for (const id of ["load", "answers", "dead", "coverage"]) await text(page, `#${id} .when`, /UTC, provisional/);
      for (const id of ["hops", "peers", "routes", "questions"]) await text(page, `#${id} .scroll`, /\d/);
      assert.deepEqual(await page.locator(".panel.failed").allTextContents(), []);
    }
    await page.keyboard.press("1");
    whole();
  });

  it("shows an absolute range, and takes one that is dragged", async () => {
    const now = Date.now();
    const at = (ms) => new Date(now + ms).toISOString().slice(0, 19);
    await page.locator("[name=from]").fill(at(-60_000));
    await page.locator("[name=to]").fill(at(0));
    await page.locator("#absolute button").click();
    assert.equal(new URL(page.url()).searchParams.get("range"), "abs");
    await text(page, "#load .when", /\d\d:\d\d:\d\d UTC/);
    await page.waitForFunction(() => !document.querySelector("#load .nothing").textContent);
    const box = await page.locator("#load .u-over").boundingBox(), before = new URL(page.url()).search;
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction((before) => location.search !== before, before);
    const q = new URL(page.url()).searchParams, span = (Date.parse(q.get("to")) - Date.parse(q.get("from"))) / 1000;
    assert.ok(span > 20 && span < 40, `half a minute was dragged over, and it shows ${span} s`);
    await page.locator("#ranges a", { hasText: "Live" }).click();
    whole();
  });

  it("can be used by everybody, dark and light, on a telephone too", async () => {
    await page.evaluate(() => localStorage.clear());
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme });
      await page.waitForFunction((name) => document.documentElement.dataset.theme === name, colorScheme);
      await axe(page, axeSource);
    }
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await back();
    await page.keyboard.press("t");
    assert.notEqual(await back(), light);
    await page.reload();
    await text(page, "#status", /^Connected/);
    assert.notEqual(await back(), light, "the choice is kept");

    await page.setViewportSize({ width: 390, height: 844 });
    await text(page, "#peers", /mobile-api/);
    await page.waitForFunction(() => [...document.querySelectorAll(".u-wrap")].every((p) => p.clientWidth <= 370));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    await axe(page, axeSource);
    whole();
  });

  it("says when the auditor is gone, and goes on when it is back", async () => {
    await text(page, "#status", /^Connected/);
    await page.keyboard.press("3"); // which is asked for every 30 s
    await text(page, "#load .when", /UTC/);
    await daemon.stop();
    await text(page, "#status", /^NO CONNECTION to the auditor since .* Everything below is of/);
    assert.match(await page.title(), /^No connection/);
    assert.equal(await page.locator("body.lost").count(), 1);
    await page.keyboard.press("2");
    await text(page, "#peers .note", /^Could not be read/);
    await page.keyboard.press("3");
    await text(page, "#load .nothing", /^Could not be read/);
    daemon = await demo(new URL(daemon.url).host);
    await text(page, "#status", /^Connected/);
    assert.equal(await page.locator("body.lost").count(), 0);
    await page.waitForFunction(() => !document.querySelector(".panel.failed") && !document.querySelector("#load .nothing").textContent.startsWith("Could"), null, { timeout: 15_000 });
    await page.keyboard.press("1");
    await text(page, "#verdict-word", /^(Quiet|Retry storm)/);
    whole();
  });
});
