// What is looked at: all of it stands in the URL, so that a view can be shared.

export const ranges = { live: "Live", "15m": "15 min", "1h": "1 h", "24h": "24 h", abs: "From … to" } as const;
export type Range = keyof typeof ranges;

export interface View {
  dependency?: string;
  range: Range;
  from?: string; // with abs: RFC 3339
  to?: string;
  route?: string;
  originator?: string; // "-": what could not be attributed
  peer?: string;
  question?: string; // the hash of its key
  sort: "excess" | "seconds";
}

const names = ["dependency", "from", "to", "route", "originator", "peer", "question"] as const;

export function read(search: string): View {
  const q = new URLSearchParams(search);
  const r = q.get("range") ?? "live";
  const v: View = { range: Object.hasOwn(ranges, r) ? (r as Range) : "live", sort: q.get("sort") === "seconds" ? "seconds" : "excess" };
  for (const name of names) v[name] = q.get(name) ?? undefined;
  if (v.range === "abs") {
    const [from, to] = span(v, 0);
    if (!(Math.abs(to - from) >= 1)) v.range = "live"; // one is no time, or both are the same
    else if (from > to) [v.from, v.to] = [v.to, v.from];
  }
  if (v.originator !== undefined && v.peer !== undefined) v.peer = undefined; // rows are by route and one of them
  return v;
}

/** changed is a view with something else in it. Rows are by route and one of originator and peer: the newer one stays. */
export function changed(v: View, change: Partial<View>): View {
  const out = { ...v, ...change };
  if (change.peer !== undefined) out.originator = undefined;
  else if (change.originator !== undefined) out.peer = undefined;
  return out;
}

export function write(v: View): string {
  const q = new URLSearchParams();
  for (const name of names) {
    if ((name === "from" || name === "to") && v.range !== "abs") continue;
    const x = v[name];
    if (x !== undefined) q.set(name, x);
  }
  if (v.range !== "live") q.set("range", v.range);
  if (v.sort !== "excess") q.set("sort", v.sort);
  return q.size > 0 ? "?" + q : "?";
}

/** part says that figures are of a part of the dependency, which the stream has not. */
export const part = (v: View): boolean => v.route !== undefined || v.originator !== undefined || v.peer !== undefined;

/** streamed says that figures move with the stream: by log time, each second. */
export const streamed = (v: View): boolean => v.range === "live" && !part(v);

const spans = { live: 600, "15m": 900, "1h": 3600, "24h": 86400 };

/** iso is a moment in seconds since 1970 as the API and addresses have it: RFC 3339, whole seconds. */
export const iso = (at: number): string => new Date(Math.round(at) * 1000).toISOString();

/** span is the range in seconds since 1970, as of now. */
export function span(v: View, now: number): [number, number] {
  if (v.range === "abs") return [Date.parse(v.from ?? "") / 1000, Date.parse(v.to ?? "") / 1000];
  return [now - spans[v.range], now];
}

/**
 * asked is the range as the API is asked for it: a live one by the clock of the daemon,
 * whatever that of the browser says. It is the newest part of it, if it is longer than most,
 * in seconds.
 */
export function asked(v: View, most = Infinity): { from: string; to: string } {
  if (v.range === "abs") {
    const [from, to] = span(v, 0);
    return { from: iso(from), to: iso(to) };
  }
  return { from: `-${Math.min(spans[v.range], most)}s`, to: "now" };
}

/** selection is what the API is asked for. */
export function selection(v: View): { [name: string]: string | undefined } {
  return { dependency: v.dependency, route: v.route, originator: v.originator, peer: v.peer };
}
