// What the tests of the page need: a real auditor, and a real browser.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chromium } from "playwright-core";
import assert from "node:assert/strict";

/** program is the auditor that make builds. */
export const program = new URL("../../../bin/auditor", import.meta.url).pathname;

/** auditor starts the program, and waits until it says where it serves. */
export async function auditor(args, serves) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const url = await new Promise((found, failed) => {
    const look = (text) => {
      said += text;
      const m = serves.exec(said);
      if (m) found(m[1]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", (code) => failed(new Error(`auditor ${args.join(" ")} ended with ${code}: ${said}`)));
    child.on("error", failed);
  });
  return {
    url: url.endsWith("/") ? url : url + "/",
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

export const demo = (listen = "127.0.0.1:0") => auditor(["demo", "--listen", listen], /^ {2}(http:\/\/127\.0\.0\.1:\d+\/) /m);

/** browser starts Chromium; its own sandbox cannot be had by root. */
export function browser() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, chromiumSandbox: process.getuid() !== 0 });
}

/**
 * open opens a page that must stay whole: no error in it, nothing that its policy
 * refused, nothing asked of another host. What else it logs are failed requests.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (e) => faults.push("error: " + e.message));
  page.on("dialog", (d) => { faults.push("dialog: " + d.message()); void d.dismiss(); });
  page.on("console", (m) => { if (/Content Security Policy|Trusted/i.test(m.text())) faults.push(m.text()); });
  page.on("request", (r) => { if (new URL(r.url()).host !== new URL(url).host) faults.push("asked " + r.url()); });
  await page.goto(url);
  return { page, whole: () => assert.deepEqual(faults, []) };
}

/** axe finds what people with other senses or hands could not use. */
export async function axe(page, source) {
  await page.evaluate(source);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120) + " " + n.any.map((a) => a.message).join()).slice(0, 3).join(" | ")}`), []);
}

/** text waits until an element holds what is wanted. */
export async function text(page, selector, pattern, timeout = 60_000) {
  try {
    await page.waitForFunction(([s, p]) => new RegExp(p).test(document.querySelector(s)?.textContent ?? ""), [selector, pattern.source], { timeout });
  } catch {
    assert.match(await page.locator(selector).first().textContent() ?? "", pattern, selector);
  }
}

