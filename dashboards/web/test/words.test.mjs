// What the page makes of answers, without a browser: gaps, words, addresses.

import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { build } from "esbuild";

async function load(name) {
  const out = await build({ entryPoints: [new URL(`../src/${name}.ts`, import.meta.url).pathname], bundle: true, format: "esm", write: false });
  return import("data:text/javascript;base64," + Buffer.from(out.outputFiles[0].contents).toString("base64"));
}

const { stored, Live, forecast, doubt, deadOf, originalsOf } = await load("frame");
const { AlertLog, firing } = await load("alerts");
const { judge } = await load("verdict");
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

describe("an hour of seconds", () => {
  it("is kept, and no more, however long the page is open", () => {
    const live = new Live("seats");
    for (let s = 1; s <= 9000; s++) live.push(summary(s, s, 1));
    const f = live.frame(seconds(0), seconds(9000));
    assert.deepEqual([f.x.length, f.x[0], f.x.at(-1), f.live], [3600, seconds(5401), seconds(9000), seconds(5401)]);
    assert.deepEqual([f.y.originals[0], f.y.originals[1800], f.y.originals.at(-1)], [5401, 7201, 9000]);
    assert.deepEqual(live.frame(seconds(8990), seconds(8993)).x, [8991, 8992, 8993].map(seconds));
    assert.deepEqual(live.frame(seconds(100), seconds(200)).x, [], "what is no longer kept is not there");
  });
});

describe("originals", () => {
  it("are not known where arrivals came and none could be attributed", () => {
    assert.deepEqual([[0, { arrivals: 9, attributable: 0 }], [0, { arrivals: 0, attributable: 0 }], [0, { arrivals: 9, attributable: 3 }], [2, { arrivals: 9, attributable: 9 }], [null, {}]].map(([rate, of]) => originalsOf(rate, of)), [null, 0, 0, 2, null]);
    const live = new Live("seats");
    live.push(summary(1, 20, 1, { window: { attributable: 0, verified: 0, originals_per_second: 0 } }));
    assert.deepEqual(live.frame(seconds(0), seconds(2)).y.originals, [null]);
    assert.deepEqual(stored({ from: at(0), to: at(10), step_seconds: 10, series: [{ points: [{ at: at(0), values: { arrivals: 9, attributable: 0, originals: 0 } }] }] }).y.originals, [null]);
  });
});

describe("bounds", () => {
  it("are where some of what should be judged was not", () => {
    for (const [visibility, unjudged, want] of [[1, 0, 0], [1, undefined, 0], [0.999, 0, 1], [0, 0, 1], [1, 1, 1], [null, 3, null], [undefined, undefined, null]]) assert.equal(doubt(visibility, unjudged), want, `${visibility}, ${unjudged}`);
    assert.deepEqual([[0, 0], [0, 1], [0.25, 0], [null, 1], ["unbounded", 1]].map(([share, visibility]) => deadOf(share, visibility)), [null, 0, 0.25, null, null]);
  });
  it("are marked where something is not known, and what is not known is no bound", () => {
    assert.equal(format.atLeast(3, format.seconds(485)), "≥ 485 s");
    assert.equal(format.atLeast(0, format.seconds(485)), "485 s");
    assert.equal(format.atLeast(undefined, format.share(0.25)), "25.0 %");
    assert.equal(format.atLeast(3, format.seconds(null)), format.none);
  });
});

describe("the verdict", () => {
  const words = (s) => judge(s, s.dependencies[0], 0.85);
  const quiet = { kind: "quiet", load_factor: 1, usual_load_factor: 1.2, demand: null, re_ask: false, hidden_repeats_suspected: false, blind: false };

  it("is the daemon's, in words", () => {
    for (const [verdict, word, level, why] of [
      [{ ...quiet }, "Quiet", "good", "no arrival is a repeat"],
      [{ ...quiet, load_factor: 1.25, demand: 1.1 }, "Quiet", "good", "each original brings 1.25 arrivals, so 20.0 % are repeats; usual are 1.2; demand is 1.10× the ordinary one"],
      [{ ...quiet, kind: "storm", load_factor: 4 }, "Retry storm", "bad", "each original brings 4 arrivals, so 75.0 % are repeats; usual are 1.2"],
      [{ ...quiet, kind: "storm", load_factor: null }, "Retry storm", "bad", "nothing but repeats came"],
      [{ ...quiet, kind: "both", load_factor: 4, demand: 2 }, "Retry storm and demand", "bad", /demand is 2\.00× the ordinary one$/],
      [{ ...quiet, kind: "demand", demand: 2 }, "Demand", "warn", /demand is 2\.00× the ordinary one$/],
      [{ ...quiet, kind: "demand", demand: 2, re_ask: true }, "People ask again", "warn", /originals rise while fewer are answered in time$/],
      [{ ...quiet, hidden_repeats_suspected: true }, "Hidden repeats?", "warn", /^no arrival is a repeat; hidden repeats suspected/],
      [{ ...quiet, kind: null, load_factor: null }, "Cannot be judged", "unknown", /could be attributed/],
      [null, "Too little to judge", "unknown", "200 arrivals in 10 s"],
    ]) {
      const v = words(summary(100, 20, 1, { dependency: { verdict } }));
      assert.deepEqual([v.word, v.level, v.trust], [word, level, []], JSON.stringify(verdict));
      if (why instanceof RegExp) assert.match(v.why, why);
      else assert.equal(v.why, why);
    }
    const spent = summary(100, 20, 1, { dependency: { verdict: quiet }, budgets: [{ route: "", state: "exhausted" }] });
    assert.deepEqual([words(spent).word, words(spent).level], ["Retries rise", "warn"]);
    const other = summary(100, 20, 1, { dependency: { verdict: quiet }, budgets: [{ route: "GET /a", state: "exhausted" }] });
    assert.equal(words(other).word, "Quiet");
  });

  it("stands beside what the figures lack", () => {
    for (const [more, want] of [
      [{ dependency: { verdict: { ...quiet, blind: true } } }, /^blind: keys prove 100 % of arrivals \(85\.0 % are wanted\), and 100 % of records can show/],
      [{ dependency: { verdict: { ...quiet, blind: true } }, window: { verified: 160, claimed: 40 } }, /^blind: keys prove 80\.0 %/],
      [{ dependency: { verdict: { ...quiet, blind: true } }, responses: { visibility: 0.4 } }, /^blind: .* and 40\.0 % of records can show/],
      [{ dependency: { read_share: 0.9 } }, /^only 90\.0 % of records could be read$/],
      [{ dependency: { warming: true } }, /^warming/],
      [{ dependency: { scope_split: true } }, /two scopes/],
      [{ dependency: { sampling: { share: 0.25 } } }, /^one question in 4 is followed$/],
      [{ state: "store_unavailable" }, /^the auditor is store unavailable$/],
    ]) {
      const v = words(summary(100, 20, 1, { ...more, dependency: { verdict: quiet, ...more.dependency } }));
      assert.equal(v.word, "Quiet");
      assert.equal(v.trust.length, 1);
      assert.match(v.trust[0], want);
    }
  });
});

describe("the forecast", () => {
  const of = (budget, window = {}) => forecast(summary(100, 20, 1, { budgets: [{ route: "", ...budget }], window }).dependencies[0]);
  it("is of a budget that rises and is not spent, and of no other", () => {
    assert.deepEqual(of({ consumed: 0.5, exhausts_in_seconds: 20 }), { from: seconds(100), value: 0.5, at: seconds(120) });
    assert.deepEqual(of({ consumed: 0, exhausts_in_seconds: 0.5 }), { from: seconds(100), value: 0, at: seconds(100) + 0.5 });
    for (const b of [{ consumed: 0.5, exhausts_in_seconds: null }, { consumed: 1, exhausts_in_seconds: 0 }, { consumed: null, exhausts_in_seconds: 5 }, { consumed: "unbounded", exhausts_in_seconds: 5 }]) assert.equal(of(b), null, JSON.stringify(b));
    assert.equal(of({ consumed: 0.5, exhausts_in_seconds: 20 }, { to: null }), null);
    assert.equal(of({ route: "GET /a", consumed: 0.5, exhausts_in_seconds: 20 }), null, "a route's budget is not the dependency's");
  });
});

describe("alerts over time", () => {
  const alert = (alert, since, fired, resolved, more = {}) => ({ alert, labels: { dependency: "seats", severity: "critical" }, state: "firing", since: at(since), fired_at: fired === null ? null : at(fired), resolved_at: resolved === null ? null : at(resolved), ...more });
  const take = (log, now, ...alerts) => log.take({ at: at(now), evaluated: true, alerts, past: [], past_from: at(0) });
  const named = (log, from, to) => log.within(seconds(from), seconds(to)).map((x) => [x.name, x.since - seconds(0), x.fired && x.fired - seconds(0), x.ended && x.ended - seconds(0)]);

  it("are kept after the daemon tells of them no more", () => {
    const log = new AlertLog();
    take(log, 100, alert("A", 50, null, null));
    assert.deepEqual(named(log, 0, 200), [["A", 50, null, null]]);
    assert.equal(firing(log.within(seconds(0), seconds(200)), seconds(90)), "", "what is pending does not fire");
    take(log, 110, alert("A", 50, 105, null), alert("B", 60, null, null));
    take(log, 150, alert("A", 50, 105, 140));
    assert.deepEqual(named(log, 0, 200), [["A", 50, 105, 140]], "B never fired, and is over");
    take(log, 1000);
    take(log, 1010, alert("A", 1005, 1008, null, { labels: { severity: "critical", dependency: "seats" } }));
    assert.deepEqual(named(log, 0, 2000), [["A", 50, 105, 140], ["A", 1005, 1008, null]]);
    assert.deepEqual(named(log, 200, 900), []);
    assert.deepEqual([104, 105, 139, 140, 1009].map((s) => firing(log.within(seconds(0), seconds(2000)), seconds(s))), ["", " · A fires", " · A fires", "", " · A fires"]);
    take(log, 139 + 86400, alert("A", 1005, 1008, null));
    assert.deepEqual(named(log, 0, 5000).length, 2, "a day is kept");
    take(log, 141 + 86400, alert("A", 1005, 1008, null));
    assert.deepEqual(named(log, 0, 5000), [["A", 1005, 1008, null]], "and no more");
  });

  it("are known from before the page was opened", () => {
    const log = new AlertLog();
    const past = [alert("B", 70, 71, 80, { state: "resolved" }), alert("A", 50, 55, 60, { state: "resolved" })];
    log.take({ at: at(100), evaluated: true, alerts: [alert("B", 70, 71, 80, { state: "resolved" })], past, past_from: at(40) });
    assert.deepEqual(named(log, 0, 200), [["A", 50, 55, 60], ["B", 70, 71, 80]]);
    assert.equal(log.since, seconds(40));
    log.take({ at: at(200), evaluated: true, alerts: [], past, past_from: at(150) });
    assert.equal(log.since, seconds(40), "the page knows more than a daemon that has begun anew");
    log.take({ at: at(86400 + 100), evaluated: true, alerts: [], past: [], past_from: at(150) });
    assert.equal(log.since, seconds(100), "a day, and no more");
  });

  it("are not known where nobody evaluates any", () => {
    const log = new AlertLog();
    log.take({ at: at(100), evaluated: false, alerts: [], past: [], past_from: null });
    assert.equal(log.since, null);
    take(log, 400);
    assert.equal(log.since, seconds(0));
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
  it("name an originator or a peer: the one that was chosen last", () => {
    const v = { dependency: "seats", range: "live", sort: "excess", originator: "web", route: "GET /" };
    assert.equal(view.write(view.changed(v, { peer: "bff" })), "?dependency=seats&route=GET+%2F&peer=bff");
    assert.equal(view.write(view.changed({ ...v, originator: undefined, peer: "bff" }, { originator: "-" })), "?dependency=seats&route=GET+%2F&originator=-");
    assert.equal(view.write(view.changed({ ...v, originator: undefined, peer: "bff" }, { range: "1h" })), "?dependency=seats&route=GET+%2F&peer=bff&range=1h");
  });
  it("ask for a range by the daemon's clock, or as it stands", () => {
    assert.deepEqual(["live", "15m", "1h", "24h"].map((range) => Object.values(view.asked({ range })).join(" ")), ["-600s now", "-900s now", "-3600s now", "-86400s now"]);
    assert.deepEqual(view.asked({ range: "live" }, 300), { from: "-300s", to: "now" });
    assert.deepEqual(view.asked({ range: "abs", from: "2026-11-30T12:00:00.600+01:00", to: at(60) }), { from: "2026-11-30T11:00:01.000Z", to: at(60) });
    assert.deepEqual([at(60), at(0)], [view.read(`?range=abs&from=${at(0)}&to=${at(60)}`).to, view.read(`?range=abs&from=${at(60)}&to=${at(0)}`).from]);
    assert.equal(view.read(`?range=abs&from=${at(0)}&to=${at(0)}`).range, "live");
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
    assert.deepEqual([0, 0.001, 0.25, 1.5, -0.02].map(format.seconds), ["0 s", "1 ms", "250 ms", "1.5 s", "-20 ms"]);
    assert.deepEqual([0, 0.001, -0.001, 0.02].map(format.rate), ["0/s", "< 0.01/s", "> −0.01/s", "0.02/s"]);
    assert.equal(format.share(0.9996), "> 99.9 %");
    assert.equal(format.share(1), "100 %");
  });
});
