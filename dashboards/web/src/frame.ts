// The figures over time that charts draw. Each point stands at the end of the time it
// speaks for. What is not known is null, which is drawn as a gap and never as 0.

import type { Happening } from "./alerts";
import type { Dependency, Series, Summary, Values, Window } from "./api";
import { number, type Ratio } from "./format";

export const columns = [
  "arrivals", "originals", "answers", "goodput", "dead", "visibility", "verified", "attributable", "coverage", "load", "consumed", "consumedHigh", "doubt",
] as const;
export type Column = (typeof columns)[number];
type Point = { [c in Column]: number | null };

export interface Frame {
  from: number; // seconds since 1970
  to: number;
  x: number[];
  y: { [c in Column]: (number | null)[] };
  provisional: [number, number] | null; // what of it will still change
  live: number | null; // from here on points are of log time, and of the 10 s before them
  alerts: Happening[]; // of its time, as far as they are known
}

/** Forecast is when the budget is spent, at its present slope. */
export interface Forecast {
  from: number; // seconds since 1970
  value: number; // consumed by then
  at: number; // all of it is
}

/** forecast is that of a dependency's own budget; null if it is spent, or does not rise. */
export function forecast(d: Dependency): Forecast | null {
  const b = own(d), value = number(b?.consumed), left = number(b?.exhausts_in_seconds), to = window(d, "10s")?.to;
  if (value === null || left === null || !to || value >= 1) return null;
  const from = Date.parse(to) / 1000;
  return { from, value, at: from + left };
}

/** measures are what stored frames are made of. */
export const measures = [
  "arrivals", "originals", "load_factor", "verified", "attributable", "coverage",
  "responses.answers", "responses.goodput_per_second", "responses.dead_share", "responses.visibility", "responses.unjudged",
].join(",");

const over = (a: Ratio, b: Ratio): number | null => (typeof a === "number" && typeof b === "number" && b > 0 ? a / b : null);

/**
 * doubt is 1 where some records show no departure, or had a deadline and no time to judge
 * it by: then answers known to be dead are the least of those that are, and goodput is at
 * most what is known. It is 0 where all could be judged, and null where that is not known.
 */
export function doubt(visibility: Ratio, unjudged: Ratio): number | null {
  const seen = number(visibility);
  return seen === null ? null : seen < 1 || (number(unjudged) ?? 0) > 0 ? 1 : 0;
}

/** originalsOf is how many originals there were; null where arrivals came and none could be attributed. */
export const originalsOf = (rate: Ratio, of: { arrivals?: Ratio; attributable?: Ratio }): number | null => (of.attributable === 0 && of.arrivals !== 0 ? null : number(rate));

/** deadOf is the dead share; null where no record could show a departure and none was dead. */
export const deadOf = (share: Ratio, visibility: Ratio): number | null => (visibility === 0 && share === 0 ? null : number(share));

export function empty(from: number, to: number): Frame {
  return { from, to, x: [], y: Object.fromEntries(columns.map((c) => [c, []])) as unknown as Frame["y"], provisional: null, live: null, alerts: [] };
}

function put(f: Frame, at: number, p: Point | null): void {
  f.x.push(at);
  for (const c of columns) f.y[c].push(p ? p[c] : null);
}

/** stored makes a frame of a stored answer. Steps without a point are gaps. */
export function stored(s: Series): Frame {
  const from = Date.parse(s.from) / 1000, to = Date.parse(s.to) / 1000, step = s.step_seconds;
  const f = empty(from, to);
  const points = new Map((s.series[0]?.points ?? []).map((p) => [Date.parse(p.at) / 1000, p]));
  let first: number | null = null, last = 0;
  for (let at = from; at < to; at += step) {
    const p = points.get(at);
    put(f, at + step, p ? ofValues(p.values, step) : null);
    if (p?.provisional) {
      first ??= at;
      last = at + step;
    }
  }
  if (first !== null) f.provisional = [first, last];
  return f;
}

function ofValues(v: Values, step: number): Point {
  const per = (x: Ratio): number | null => over(x, step);
  return {
    arrivals: per(v.arrivals), originals: originalsOf(per(v.originals), v), load: number(v.load_factor),
    answers: per(v["responses.answers"]), goodput: number(v["responses.goodput_per_second"]),
    dead: deadOf(v["responses.dead_share"], v["responses.visibility"]), visibility: number(v["responses.visibility"]),
    doubt: doubt(v["responses.visibility"], v["responses.unjudged"]),
    verified: over(v.verified, v.arrivals), attributable: over(v.attributable, v.arrivals), coverage: number(v.coverage),
    consumed: null, consumedHigh: null, // budgets are of log time: no row has them
  };
}

/** window picks a live window by its name. */
export const window = (d: Dependency, name: string, of: "windows" | "closed_windows" = "windows"): Window | undefined =>
  d[of].find((w) => w.window === name);

/** own is the dependency's own budget: routes may have others beside it. */
export const own = (d: Dependency) => d.budgets.find((b) => b.route === "");

// In these states the figures do not speak for the present.
const silent = ["starting", "rebuilding", "standby", "stalled", "failed"];

function ofSummary(s: Summary, d: Dependency): Point | null {
  const w = window(d, "10s"), b = own(d);
  if (!w || silent.includes(s.state)) return null;
  return {
    arrivals: number(w.arrivals_per_second), originals: originalsOf(w.originals_per_second, w), load: number(w.load_factor),
    answers: number(w.answers_per_second), goodput: number(w.responses.goodput_per_second),
    dead: deadOf(w.responses.dead_share, w.responses.visibility), visibility: number(w.responses.visibility), doubt: doubt(w.responses.visibility, w.responses.unjudged),
    verified: over(w.verified, w.arrivals), attributable: over(w.attributable, w.arrivals), coverage: number(w.coverage),
    consumed: number(b?.consumed), consumedHigh: number(b?.consumed_high),
  };
}

const hour = 3600;

/** Live keeps an hour of one dependency's seconds, and before them what is stored. */
export class Live {
  private held = empty(0, 0); // seconds in order; those before the last hour are cut off now and then
  private before: Frame | null = null;

  constructor(readonly dependency: string) {}

  /** push takes a summary; where seconds are missing before it there will be a gap. */
  push(s: Summary): void {
    const d = s.dependencies.find((d) => d.dependency === this.dependency);
    const to = d && window(d, "10s")?.to;
    const at = Math.floor(Date.parse(to ?? s.at) / 1000);
    const last = this.held.x.at(-1);
    if (last !== undefined && at <= last) return;
    if (last !== undefined && at - last > 3) put(this.held, last + 1, null);
    put(this.held, at, d ? ofSummary(s, d) : null);
    if (this.held.x.length >= 2 * hour) this.held = cut(this.held, hour, this.held.x.length);
  }

  /** backfill takes what is stored of the time before the first summary. */
  backfill(f: Frame): void {
    this.before = f;
  }

  /** pending says that the backfill is wanted, because there is none or it is not final. */
  get pending(): boolean {
    return this.before === null || this.before.provisional !== null;
  }

  /** start is when the seconds of the stream begin. */
  get start(): number | null {
    const { x } = this.held;
    return x[Math.max(0, x.length - hour)] ?? null;
  }

  frame(from: number, to: number): Frame {
    const start = this.start ?? Infinity, { x } = this.held;
    const f = cut(this.held, Math.max(after(x, from), x.length - hour), after(x, to));
    f.from = from;
    f.to = to;
    const b = this.before;
    if (b) {
      const stored = cut(b, after(b.x, from), after(b.x, start - 1));
      f.x = stored.x.concat(f.x);
      for (const c of columns) f.y[c] = stored.y[c].concat(f.y[c]);
      if (b.provisional && b.provisional[0] < start) f.provisional = [b.provisional[0], Math.min(b.provisional[1], start)];
    }
    if (start < to && start > from) f.live = start;
    return f;
  }
}

/** cut is the points of a frame from one index up to another, which is not included. */
function cut(f: Frame, from: number, to: number): Frame {
  const out = empty(f.from, f.to);
  out.x = f.x.slice(from, Math.max(from, to));
  for (const c of columns) out.y[c] = f.y[c].slice(from, Math.max(from, to));
  return out;
}

/** after is the index of the first moment that is later than one. */
function after(x: number[], at: number): number {
  let low = 0, high = x.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (x[mid]! > at) high = mid;
    else low = mid + 1;
  }
  return low;
}
