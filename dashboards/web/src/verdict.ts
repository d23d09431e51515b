// Is it a storm, how bad, and can the figures be trusted: in words.

import { own, window } from "./frame";
import { count, number, seconds, share, times } from "./format";
import type { Dependency, Summary } from "./api";

export interface Words {
  level: "good" | "warn" | "bad" | "unknown";
  word: string;
  why: string;
  trust: string[]; // what keeps the figures from being whole; nothing if they are
}

/** judge says in words what a dependency's newest seconds are: the verdict is the daemon's. */
export function judge(s: Summary, d: Dependency, coverageFloor: number | null): Words {
  const w = window(d, "10s"), v = d.verdict;
  const trust: string[] = [];
  if (s.state !== "ready" && s.state !== "warming") trust.push(`the auditor is ${s.state.replaceAll("_", " ")}`);
  if (d.warming) trust.push("warming: repeats are missing, so all of this reads low");
  if (d.scope_split) trust.push("a question was seen in two scopes: repeats are missing");
  if (d.sampling) trust.push(`one question in ${count(1 / d.sampling.share)} is followed`);
  const read = number(d.read_share);
  if (read !== null && read < 0.99) trust.push(`only ${share(read)} of records could be read`);
  if (v?.blind) trust.push("blind: " + (w && w.arrivals > 0 ? `keys prove ${share(w.verified / w.arrivals)} of arrivals${coverageFloor === null ? "" : ` (${share(coverageFloor)} are wanted)`}, and ${share(w.responses.visibility)} of records can show that a caller left` : "too little is proven"));

  if (!v) return { level: "unknown", word: "Too little to judge", why: `${count(w?.arrivals ?? 0)} arrivals in 10 s`, trust };
  if (!v.kind) return { level: "unknown", word: "Cannot be judged", why: "none of the newest arrivals could be attributed to a question", trust };
  const load = number(v.load_factor), spent = own(d)?.state;
  const why = [load === null ? "nothing but repeats came"
    : load > 1 ? `each original brings ${count(load)} arrivals, so ${share((load - 1) / load)} are repeats; usual are ${count(v.usual_load_factor)}` : "no arrival is a repeat"];
  const demand = number(v.demand);
  if (demand !== null) why.push(`demand is ${times(demand)} the ordinary one`);
  if (v.re_ask) why.push("people ask anew: originals rise while fewer are answered in time");
  if (v.hidden_repeats_suspected) why.push("hidden repeats suspected: arrivals without a key rise while originals do not");
  const words = (level: Words["level"], word: string): Words => ({ level, word, why: why.join("; "), trust });
  if (v.kind === "storm") return words("bad", "Retry storm");
  if (v.kind === "both") return words("bad", "Retry storm and demand");
  if (v.re_ask) return words("warn", "People ask again");
  if (v.kind === "demand") return words("warn", "Demand");
  if (v.hidden_repeats_suspected) return words("warn", "Hidden repeats?");
  if (spent === "exhausted" || spent === "low") {
    why.push(`the retry budget is ${spent}`);
    return words("warn", "Retries rise");
  }
  return words("good", "Quiet");
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
