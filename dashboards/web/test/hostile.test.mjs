// The page beside a daemon whose log was written by somebody who wants to harm who
// looks: names that would be HTML, 500 routes, and a token to get in.

import { after, before, describe, it } from "node:test";
import assert from "node:assert/strict";
import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditor, browser, open, text } from "./auditor.mjs";

const token = "0123456789abcdef0123456789abcdef";
const config = `dependency: {field: dependency}
sources:
  - {file: {paths: [access.log], follow: true}, format: json}
keys: {accept: [idempotency-key]}
store: {sqlite: auditor.db}
api: {listen: "127.0.0.1:0", tokens: [${token}]}
`;

const dependency = `<b onclick="harm()">it</b>`;
const route = `<img src=x onerror="globalThis.harmed=1">`;
const peer = `"><script>globalThis.harmed=1</script>`;
const other = `javascript:globalThis.harmed=1`;

describe("the page of a hostile log", { timeout: 120_000 }, () => {
  let chromium, daemon, dir, writing, page, whole;
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), "auditor-page-"));
    await writeFile(join(dir, "auditor.yaml"), config);
    await writeFile(join(dir, "access.log"), "");
    let n = 0;
    // Questions that cost three arrivals each; those of the worst route cost five.
    const question = () => {
      const i = n++ % 600, worst = i % 3 === 0;
      const name = worst ? route : i % 3 === 1 ? other : `GET /route/${i}/<i>`;
      return Array.from({ length: worst ? 5 : 3 }, (_, k) => JSON.stringify({
        time: new Date().toISOString(), dependency, route: name, method: "GET", path: `/p/${i}`, status: 503, duration_ms: 5 + k, bytes_sent: 1, peer, idempotency_key: `k${n}`,
      }) + "\n").join("");
    };
    const write = () => appendFile(join(dir, "access.log"), Array.from({ length: 60 }, question).join(""));
    writing = setInterval(write, 250);
    [chromium, daemon] = await Promise.all([browser(), auditor(["run", "--config", join(dir, "auditor.yaml")], /figures at (http:\/\/[\d.:]+\/)/)]);
    ({ page, whole } = await open(chromium, daemon.url));
  });
  after(async () => {
    await chromium?.close();
    await daemon?.stop();
    clearInterval(writing);
    await rm(dir, { recursive: true, force: true });
  });

  const harmless = async () => {
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    assert.equal(await page.locator("main img, main script, main b[onclick], main i[onclick]").count(), 0);
    whole();
  };

  it("asks for a token, says when it is wrong, and shows nothing before", async () => {
    await text(page, "#status", /^NO CONNECTION.*want one of api\.tokens/);
    assert.equal(await page.locator("#dependencies a").count(), 0);
    await page.locator("#token").fill("wrong");
    const refused = page.waitForResponse(async (r) => r.status() === 401 && (await r.request().allHeaders()).authorization === "Bearer wrong");
    await page.locator("#access button").click();
    await refused;
    assert.equal(await page.locator("#token").isVisible(), true);
    await page.locator("#token").fill(token);
    await page.locator("#access button").click();
    await text(page, "#status", /^Connected/);
    assert.equal(await page.locator("#token").isVisible(), false);
    assert.ok(!page.url().includes(token), "the token is in the address");
    assert.ok(!JSON.stringify(await page.evaluate(() => ({ ...localStorage }))).includes(token), "the token is kept on the disk");
    whole();
  });

  it("shows hostile names as the text that they are", async () => {
    await text(page, "#verdict-word", /^Retry storm/);
    await text(page, "#trust", /blind: keys prove 0 % of arrivals/); // the keys are claimed ones
    assert.equal(await page.locator("#routes tbody th").first().textContent(), route);
    assert.equal(await page.locator("#peers tbody th").first().textContent(), peer);
    assert.match(await page.locator("#dependencies a").first().textContent(), /^<b onclick="harm\(\)">it<\/b>/);
    await harmless();
  });

  it("says in bytes what is lost of a file", async () => {
    await text(page, "#sources thead", /gaps$/);
    await text(page, "#sources tbody", / B$/);
  });

  it("leads to hostile names by their address", async () => {
    for (const [kind, name] of [["route", other], ["peer", peer], ["route", route]]) {
      await page.locator(`#${kind}s tbody a`).filter({ hasText: name }).first().click();
      assert.equal(new URL(page.url()).searchParams.get(kind), name);
      await page.reload();
      await page.waitForFunction((name) => document.querySelector("#path").textContent.includes(name), name);
      await page.waitForFunction(() => document.querySelector("#routes tbody th"));
      await harmless();
      await page.locator("#path a").first().click();
      await page.waitForFunction(() => document.querySelector("#path").textContent === "" && document.querySelectorAll("#routes tbody tr").length > 2);
    }
  });

  it("stays short with hundreds of routes, and says what it leaves out", async () => {
    await text(page, "#routes .note", /\d\d+ more are left out/);
    assert.equal(await page.locator("#routes tbody tr").count(), 10);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForFunction(() => document.documentElement.scrollWidth === 390);
    await harmless();
  });
});
