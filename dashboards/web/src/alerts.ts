// Alerts over time. The daemon names those that are pending or fire, and those that were
// resolved in the last day; what the page has seen of them it keeps as long, so that charts
// can mark when they fired.

import type { Alert, Alerts } from "./api";

const day = 24 * 3600;
const seconds = (t: string | null | undefined): number | null => (t ? Date.parse(t) / 1000 : null);

/** Happening is one alert from its beginning to its end, in seconds since 1970. */
export interface Happening {
  name: string;
  critical: boolean;
  since: number; // its condition holds
  fired: number | null; // it had held for long enough; null: it did not, or not yet
  ended: number | null; // null: it goes on
}

/** ended is when a happening was over, as of now. */
const ended = (x: Happening, now: number): number => x.ended ?? now;

/** episode names an alert from its beginning to its end: one that fires again is another. */
export const episode = (x: Alert): string => JSON.stringify([x.alert, Object.entries(x.labels).sort(), seconds(x.since)]);

/** AlertLog keeps what happened to the alerts of one dependency. */
export class AlertLog {
  private seen = new Map<string, Happening>();
  private newest = 0;
  private oldest: number | null = null;

  /** since is from when on alerts are known. */
  get since(): number | null {
    return this.oldest;
  }

  take(a: Alerts): void {
    const now = seconds(a.at);
    if (now === null || !a.evaluated) return;
    this.newest = now;
    const from = seconds(a.past_from) ?? now;
    this.oldest = Math.max(Math.min(this.oldest ?? from, from), now - day);
    const there = new Set<string>();
    for (const x of [...a.past, ...a.alerts]) {
      const since = seconds(x.since);
      if (since === null) continue;
      const key = episode(x);
      there.add(key);
      this.seen.set(key, { name: x.alert, critical: x.labels.severity === "critical", since, fired: seconds(x.fired_at), ended: seconds(x.resolved_at) });
    }
    for (const [key, x] of this.seen) {
      // One that is told of no more is over: a pending one that never fired, or one that
      // was resolved while nobody asked.
      if (x.ended === null && !there.has(key)) x.ended = now;
      if (ended(x, now) < now - day) this.seen.delete(key);
    }
  }

  /** within is what happened in a range, in the order of beginning; what never fired and is over is left out. */
  within(from: number, to: number): Happening[] {
    return [...this.seen.values()].filter((x) => x.since < to && ended(x, this.newest) >= from && (x.fired !== null || x.ended === null)).sort((a, b) => a.since - b.since);
  }
}

/** firing is what fires at a moment, in words; nothing if nothing does. */
export function firing(all: Happening[], at: number): string {
  const names = new Set(all.filter((x) => x.fired !== null && x.fired <= at && (x.ended === null || at < x.ended)).map((x) => x.name));
  return names.size === 0 ? "" : ` · ${[...names].join(", ")} ${names.size === 1 ? "fires" : "fire"}`;
}

const order = { firing: 0, pending: 1, resolved: 2 } as const;

/** sorted puts first what fires, and of that what is critical. */
export const sorted = (all: Alert[]): Alert[] =>
  [...all].sort((a, b) => order[a.state] - order[b.state] || Number(b.labels.severity === "critical") - Number(a.labels.severity === "critical") || a.alert.localeCompare(b.alert));
