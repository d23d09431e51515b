// Is it a storm, how bad, and can the figures be trusted: in words.

import { own, window, type Frame } from "./frame";
import { count, seconds, share, times, type Ratio } from "./format";
import type { Dependency, Summary } from "./api";

/** chosen is the load factor that is taken for ordinary where none is declared. */
const chosenDefault = 1.2;

// The verdict's thresholds; docs/page.md gives the rule.
const stormAbove = 1.2, demandAbove = 1.5;

/** Grant is what the configuration says of the dependency's budget, or its defaults. */
export interface Grant {
  coverage_floor: number;
  min_arrivals: number;
}
export const ordinaryGrant: Grant = { coverage_floor: 0.85, min_arrivals: 20 };

export interface Verdict {
  level: "good" | "warn" | "bad" | "unknown";
  word: string;
  why: string;
  trust: string[]; // what keeps the figures from being whole; nothing if they are
}

const number = (v: Ratio): number | null => (typeof v === "number" ? v : null);

/** medianOriginals is the ordinary demand of the last ten minutes, if five are known. */
export function medianOriginals(f: Frame): number | null {
  const known = f.y.originals.filter((v): v is number => v !== null).sort((a, b) => a - b);
  const first = f.y.originals.findIndex((v) => v !== null);
  if (first < 0 || f.x.at(-1)! - f.x[first]! < 300) return null;
  return known[known.length >> 1] ?? null;
}

/** judge says what a dependency's last ten seconds are. */
export function judge(s: Summary, d: Dependency, chosen: number | null, grant: Grant, ordinary: number | null): Verdict {
  const w = window(d, "10s");
  const trust: string[] = [];
  if (s.state !== "ready" && s.state !== "warming") trust.push(`the auditor is ${s.state.replaceAll("_", " ")}`);
  if (d.warming) trust.push("warming: repeats are missing, so all of this reads low");
  if (d.scope_split) trust.push("a question was seen in two scopes: repeats are missing");
  if (s.sampling) trust.push(`one question in ${count(1 / s.sampling.share)} is followed`);
  const read = number(d.read_share);
  if (read !== null && read < 0.99) trust.push(`only ${share(read)} of records could be read`);
  const arrivals = w?.arrivals ?? 0;
  if (!w || arrivals < grant.min_arrivals) {
    return { level: "unknown", word: "Too little to judge", why: arrivals === 1 ? "1 arrival in 10 s" : `${count(arrivals)} arrivals in 10 s`, trust };
  }
  const verified = w.verified / arrivals, least = grant.coverage_floor;
  if (verified < least) trust.push(`blind: keys prove ${share(verified)} of arrivals, and ${share(least)} are wanted`);
  const visibility = number(w.responses.visibility);
  if (visibility !== null && visibility < 0.5) trust.push(`only ${share(visibility)} of records can show that a caller left`);

  const load = number(w.load_factor), limit = chosen || chosenDefault;
  const demand = ordinary && number(w.originals_per_second) !== null ? number(w.originals_per_second)! / ordinary : null;
  const grown = demand !== null && demand > demandAbove;
  if (load === null) return { level: "unknown", word: "Cannot be judged", why: "no arrival of the last 10 s could be attributed to a question", trust };
  const spent = own(d)?.state;
  if (load > limit * stormAbove) {
    const more = grown ? `, and demand is ${times(demand)} the ordinary one` : demand !== null ? ", while demand is ordinary" : "";
    return {
      level: "bad", word: grown ? "Retry storm and demand" : "Retry storm",
      why: `each original of the last 10 s brings ${count(load)} arrivals, so ${share((load - 1) / load)} are repeats${more}`, trust,
    };
  }
  if (grown) return { level: "warn", word: "Demand", why: `${times(demand)} the ordinary number of questions; few repeats (${times(load)})`, trust };
  if (spent === "exhausted" || spent === "low") return { level: "warn", word: "Retries rise", why: `load factor ${times(load)}, and the retry budget is ${spent}`, trust };
  return { level: "good", word: "Quiet", why: `load factor ${times(load)}, ${share((load - 1) / load)} of arrivals are repeats`, trust };
}

/** budgetWords are the figures of the retry budget. */
export function budgetWords(d: Dependency): { left: string; when: string; state: string } {
  const b = own(d), consumed = number(b?.consumed);
  if (!b || consumed === null) return { left: share(null), when: "", state: "no reading" };
  const state = b.state ?? "no state";
  if (consumed >= 1) return { left: "none", when: `${share(consumed)} spent`, state };
  const left = share(1 - consumed) + " left";
  return { left, when: typeof b.exhausts_in_seconds === "number" ? `gone in ${seconds(b.exhausts_in_seconds)}` : "not rising", state };
}
