// The figures over time that charts draw. Each point stands at the end of the time it
// speaks for. What is not known is null, which is drawn as a gap and never as 0.

import type { Happening } from "./alerts";
import type { Dependency, Series, Summary, Values, Window } from "./api";
import { number, type Ratio } from "./format";

export const columns = [
  "arrivals", "originals", "answers", "goodput", "dead", "visibility", "verified", "attributable", "coverage", "load", "consumed", "consumedHigh",
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
  "responses.answers", "responses.goodput_per_second", "responses.dead_share", "responses.visibility",
].join(",");

const over = (a: Ratio, b: Ratio): number | null => (typeof a === "number" && typeof b === "number" && b > 0 ? a / b : null);

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
    arrivals: per(v.arrivals), originals: per(v.originals), load: number(v.load_factor),
    answers: per(v["responses.answers"]), goodput: number(v["responses.goodput_per_second"]),
    dead: number(v["responses.dead_share"]), visibility: number(v["responses.visibility"]),
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
    arrivals: number(w.arrivals_per_second), originals: number(w.originals_per_second), load: number(w.load_factor),
    answers: number(w.answers_per_second), goodput: number(w.responses.goodput_per_second),
    dead: number(w.responses.dead_share), visibility: number(w.responses.visibility),
    verified: over(w.verified, w.arrivals), attributable: over(w.attributable, w.arrivals), coverage: number(w.coverage),
    consumed: number(b?.consumed), consumedHigh: number(b?.consumed_high),
  };
}

/** Live keeps an hour of one dependency's seconds, and before them what is stored. */
export class Live {
  private points: { at: number; p: Point | null }[] = [];
  private before: Frame | null = null;

  constructor(readonly dependency: string) {}

  /** push takes a summary; where seconds are missing before it there will be a gap. */
  push(s: Summary): void {
    const d = s.dependencies.find((d) => d.dependency === this.dependency);
    const to = d && window(d, "10s")?.to;
    const at = Math.floor(Date.parse(to ?? s.at) / 1000);
    const last = this.points.at(-1);
    if (last && at <= last.at) return;
    if (last && at - last.at > 3) this.points.push({ at: last.at + 1, p: null });
    this.points.push({ at, p: d ? ofSummary(s, d) : null });
    if (this.points.length > 3600) this.points.shift();
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
    return this.points[0]?.at ?? null;
  }

  frame(from: number, to: number): Frame {
    const f = empty(from, to);
    const start = this.start ?? Infinity;
    const b = this.before;
    if (b) {
      for (let i = 0; i < b.x.length; i++) {
        const at = b.x[i]!;
        if (at > from && at < start) put(f, at, Object.fromEntries(columns.map((c) => [c, b.y[c][i] ?? null])) as Point);
      }
      if (b.provisional && b.provisional[0] < start) f.provisional = [b.provisional[0], Math.min(b.provisional[1], start)];
    }
    for (const { at, p } of this.points) if (at > from && at <= to) put(f, at, p);
    if (start < to && start > from) f.live = start;
    return f;
  }
}
