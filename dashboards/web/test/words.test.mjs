// What the page makes of answers, without a browser: gaps, words, addresses.

import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { build } from "esbuild";

async function load(name) {
  const out = await build({ entryPoints: [new URL(`../src/${name}.ts`, import.meta.url).pathname], bundle: true, format: "esm", write: false });
  return import("data:text/javascript;base64," + Buffer.from(out.outputFiles[0].contents).toString("base64"));
}

const { stored, Live } = await load("frame");
const { judge, medianOriginals, ordinaryGrant } = await load("verdict");
const view = await load("view");
const format = await load("format");

const at = (s) => new Date(Date.UTC(2026, 10, 30, 12, 0, s)).toISOString();
const seconds = (s) => Date.parse(at(s)) / 1000;

/** summary is of ten seconds up to a moment: o originals a second, each with load arrivals. */
function summary(s, o, load, more = {}) {
  const arrivals = o * load * 10;
  const window = {
    window: "10s", from: at(s - 10), to: at(s), arrivals, attributable: arrivals, verified: arrivals, claimed: 0, unattributable: { total: 0 }, coverage: 1,
    load_factor: o > 0 ? load : null, arrivals_per_second: o * load, originals_per_second: o, answers_per_second: o * load,
    responses: { answers: arrivals, visibility: 1, dead_share: 0, dead_seconds: 0, goodput_per_second: o, ...more.responses }, ...more.window,
  };
  return { at: at(s), state: more.state ?? "ready", sampling: null, dependencies: [{ dependency: "seats", warming: false, scope_split: false, read_share: 1, windows: [window], closed_windows: [], budgets: more.budgets ?? [], ...more.dependency }] };
}

describe("frames", () => {
  const series = (points) => ({ from: at(0), to: at(50), step_seconds: 10, series: [{ dependency: "seats", name: "", points }] });
  const point = (s, arrivals, provisional = false) => ({ at: at(s), coverage: 0.5, provisional, values: { arrivals, originals: null, "responses.dead_share": "unbounded" } });

  it("leave a gap where there is no point, and 0 where 0 was counted", () => {
    const f = stored(series([point(0, 100), point(20, 0), point(40, 50, true)]));
    assert.deepEqual(f.x, [10, 20, 30, 40, 50].map(seconds));
    assert.deepEqual(f.y.arrivals, [10, null, 0, null, 5]);
    assert.deepEqual(f.y.originals, [null, null, null, null, null]);
    assert.deepEqual(f.y.dead, [null, null, null, null, null]);
    assert.deepEqual(f.provisional, [40, 50].map(seconds));
    assert.ok(stored({ ...series([]), series: [] }).y.arrivals.every((v) => v === null));
  });

  it("have a gap where the stream said nothing, or nothing that speaks for the present", () => {
    const live = new Live("seats");
    for (const s of [100, 101, 101, 110]) live.push(summary(s, 20, 1));
    live.push(summary(111, 20, 1, { state: "stalled" }));
    live.push({ ...summary(112, 20, 1), dependencies: [] });
    const f = live.frame(seconds(0), seconds(200));
    assert.deepEqual(f.x, [100, 101, 102, 110, 111, 112].map(seconds));
    assert.deepEqual(f.y.arrivals, [20, 20, null, 20, null, null]);
    assert.equal(f.live, seconds(100));
  });

  it("put what is stored before the stream, and never over it", () => {
    const live = new Live("seats");
    assert.equal(live.pending, true);
    live.push(summary(35, 20, 1));
    live.backfill(stored(series([point(0, 100), point(10, 100), point(20, 100, true), point(30, 100, true)])));
    assert.equal(live.pending, true, "what is provisional is asked for again");
    const f = live.frame(seconds(10), seconds(35));
    assert.deepEqual(f.x, [20, 30, 35].map(seconds));
    assert.deepEqual(f.y.arrivals, [10, 10, 20]);
    assert.deepEqual(f.provisional, [20, 35].map(seconds));
    live.backfill(stored(series([point(0, 100)])));
    assert.equal(live.pending, false);
  });
});

describe("the verdict", () => {
  const verdict = (s, chosen = null, ordinary = null) => judge(s, s.dependencies[0], chosen, ordinaryGrant, ordinary);

  it("follows the load factor, the demand and the budget", () => {
    for (const [o, load, chosen, ordinary, budgets, word, level] of [
      [20, 1.44, null, null, [], "Quiet", "good"],
      [20, 1.45, null, null, [], "Retry storm", "bad"],
      [20, 2.3, 2, null, [], "Quiet", "good"],
      [20, 2.5, 2, null, [], "Retry storm", "bad"],
      [20, 3, null, 20, [], "Retry storm", "bad"],
      [40, 3, null, 20, [], "Retry storm and demand", "bad"],
      [40, 1, null, 20, [], "Demand", "warn"],
      [20, 1.3, null, 20, [{ route: "", state: "exhausted" }], "Retries rise", "warn"],
      [20, 1.3, null, 20, [{ route: "GET /a", state: "exhausted" }], "Quiet", "good"],
      [1, 1, null, 20, [], "Too little to judge", "unknown"],
      [0, 1, null, 20, [], "Too little to judge", "unknown"],
    ]) {
      const v = verdict(summary(100, o, load, { budgets }), chosen, ordinary);
      assert.deepEqual([v.word, v.level], [word, level], `${o}/s, load ${load}, chosen ${chosen}, ordinary ${ordinary}`);
      assert.deepEqual(v.trust, []);
    }
  });

  it("says what the figures lack", () => {
    for (const [more, want] of [
      [{ window: { verified: 160, claimed: 40 } }, /^blind: keys prove 80\.0 % of arrivals, and 85\.0 % are wanted$/],
      [{ responses: { visibility: 0.4 } }, /^only 40\.0 % of records can show/],
      [{ dependency: { read_share: 0.9 } }, /^only 90\.0 % of records could be read$/],
      [{ dependency: { warming: true } }, /^warming/],
      [{ dependency: { scope_split: true } }, /two scopes/],
      [{ state: "store_unavailable" }, /^the auditor is store unavailable$/],
    ]) {
      const v = verdict(summary(100, 20, 1, more));
      assert.equal(v.trust.length, 1);
      assert.match(v.trust[0], want);
    }
    const nothing = verdict(summary(100, 20, 1, { window: { verified: 0, attributable: 0, load_factor: null } }));
    assert.equal(nothing.word, "Cannot be judged");
  });

  it("knows an ordinary demand only of five minutes and more", () => {
    const live = new Live("seats");
    for (let s = 0; s <= 299; s++) live.push(summary(s, s < 200 ? 20 : 40, 1));
    assert.equal(medianOriginals(live.frame(0, Infinity)), null);
    live.push(summary(300, 20, 1));
    assert.equal(medianOriginals(live.frame(0, Infinity)), 20);
  });
});

describe("addresses", () => {
  it("hold all of a view", () => {
    for (const v of [
      { range: "live", sort: "excess" },
      { dependency: "a&b=<c>", range: "15m", route: "GET /seats/{id}?x#y", peer: "bff", sort: "seconds" },
      { dependency: "é", range: "abs", from: at(0), to: at(60), originator: "-", question: "7be7a15410b33defa4c529cb778eb695", sort: "excess" },
    ]) {
      const back = Object.fromEntries(Object.entries(view.read(view.write(v))).filter(([, x]) => x !== undefined));
      assert.deepEqual(back, v);
    }
  });
  it("are read whatever they hold", () => {
    assert.equal(view.read("?range=toString").range, "live");
    assert.equal(view.read("?range=abs&from=x&to=y").range, "live");
    assert.equal(view.read("?originator=web&peer=bff").peer, undefined);
  });
});

describe("figures in text", () => {
  it("never make something of nothing, nor nothing of something", () => {
    for (const f of [format.count, format.times, format.rate, format.seconds, format.share]) {
      for (const v of [null, undefined]) assert.equal(f(v), "–");
      assert.equal(f("unbounded"), "unbounded");
    }
    assert.equal(format.clock(null), "–");
    assert.equal(format.share(0), "0 %");
    assert.equal(format.share(0.0004), "< 0.1 %");
    assert.equal(format.share(0.9996), "> 99.9 %");
    assert.equal(format.share(1), "100 %");
  });
});
