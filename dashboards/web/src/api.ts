// What the daemon answers, and how it is asked. Fields that a daemon of another
// version lacks are undefined: the page says less then, and never guesses.

import type { Ratio } from "./format";

export interface Meta {
  at: string;
  state: string;
  coverage: Ratio;
  coverage_verified: Ratio;
  coverage_claimed: Ratio;
  complete_until: string | null;
  provisional: boolean;
  warming: boolean;
  sampling?: { share: number } | null;
  scope_split?: boolean;
}

export interface Responses {
  answers: number;
  refused: number;
  visibility: Ratio;
  dead_share: Ratio;
  dead_seconds: Ratio;
  /** arrivals without a time, and those of them that had a deadline */
  untimed: number;
  unjudged: number;
  goodput_per_second: Ratio;
}

export interface Window {
  window: string;
  from: string | null;
  to: string | null;
  arrivals: number;
  attributable: number;
  verified: number;
  claimed: number;
  unattributable: { [reason: string]: number };
  coverage: Ratio;
  load_factor: Ratio;
  amplification: Ratio;
  amplification_low: Ratio;
  amplification_high: Ratio;
  arrivals_per_second: Ratio;
  originals_per_second: Ratio;
  repeats_per_second: Ratio;
  answers_per_second: Ratio;
  responses: Responses;
}

export interface Budget {
  dependency: string;
  route: string;
  model: string;
  allowance: Ratio;
  spent: Ratio;
  consumed: Ratio;
  consumed_high: Ratio;
  state: string | null;
  exhausts_in_seconds: Ratio;
  peak_consumed: Ratio;
  exhausted_at: string | null;
}

export interface Verdict {
  kind: "storm" | "demand" | "both" | "quiet" | null;
  load_factor: Ratio;
  usual_load_factor: Ratio;
  demand: Ratio;
  re_ask: boolean;
  hidden_repeats_suspected: boolean;
  blind: boolean;
}

export interface Dependency {
  dependency: string;
  warming: boolean;
  complete_until: string | null;
  read_share: Ratio;
  scope_split: boolean;
  windows: Window[];
  closed_windows: Window[];
  budgets: Budget[];
  sampling: { share: number } | null;
  verdict: Verdict | null;
}

export interface Summary extends Meta {
  dependencies: Dependency[];
}

export type Values = { [measure: string]: Ratio };

export interface Series extends Meta {
  from: string;
  to: string;
  step_seconds: number;
  total: Values;
  series: { dependency: string; name: string; points: { at: string; coverage: Ratio; provisional: boolean; values: Values }[] }[];
}

export interface Part {
  dependency: string;
  name: string;
  arrivals: number;
  coverage: Ratio;
  originals: number;
  repeats: number;
  load_factor: Ratio;
  excess: Ratio;
  repeat_seconds: Ratio;
  untimed: number;
}

export interface Question {
  key_hash: string;
  dependency: string;
  route: string;
  originator: string;
  peers: string[];
  first: string;
  last: string;
  arrivals: number;
  live: boolean;
}

export interface Top extends Meta {
  from: string | null;
  to: string | null;
  parts: Part[];
  questions: Question[];
  left_out: number;
}

export interface Policy extends Meta {
  granted: { route: string; coverage_floor: number }[];
  declared: {
    chosen: number;
    worst_case: Ratio;
    affordable: Ratio;
    capacity_per_second: Ratio;
    layers: { name: string; attempts: number | null; retries: number | null; budget: number | null }[];
    findings: { text: string }[];
  } | null;
  measured: {
    dependency: string;
    window: string;
    coverage: Ratio;
    load_factor: Ratio;
    arrivals_per_second: Ratio;
    above_chosen: boolean | null;
    above_worst_case: boolean | null;
    above_affordable: boolean | null;
    above_capacity: boolean | null;
  }[];
}

export interface Alert {
  alert: string;
  labels: { [name: string]: string };
  state: "pending" | "firing" | "resolved";
  inhibited: boolean;
  told: boolean;
  value: Ratio;
  summary: string;
  description: string;
  runbook_url: string;
  since: string | null; // of log time, as is fired_at
  fired_at: string | null;
  resolved_at: string | null; // by the wall clock
}

export interface Alerts extends Meta {
  evaluated: boolean;
  share: boolean;
  alerts: Alert[];
  past: Alert[]; // resolved since past_from
  past_from: string | null;
  sinks: { sink: string; taken: number; failed: number; dropped: number; error: string | null }[];
}

export interface Sources extends Meta {
  sources: {
    source: string;
    kind: string;
    dependency: string;
    state: string;
    error: string;
    lag_seconds: Ratio;
    lag_records: Ratio;
    watermark: string | null;
    counted: number;
    quarantined: { [reason: string]: number };
    late: Ratio;
    /** one of the two is null, by what the source's offsets are */
    gap_records: number | null;
    gap_bytes: number | null;
  }[];
  together: { sources: string[]; late: number } | null;
}

/** Refused is an answer that is a problem document, or no answer of the daemon at all. */
export class Refused extends Error {
  constructor(readonly status: number, detail: string) {
    super(detail);
  }
}

// The token stays in this tab: neither in the URL, which is shared, nor on the disk.
const tokenKey = "auditor.token";
export const setToken = (token: string): void => sessionStorage.setItem(tokenKey, token);

async function ask(path: string, params: { [name: string]: string | undefined }, signal?: AbortSignal): Promise<Response> {
  const query = new URLSearchParams();
  for (const [name, v] of Object.entries(params)) if (v !== undefined && v !== "") query.set(name, v);
  const headers: { [name: string]: string } = {};
  const token = sessionStorage.getItem(tokenKey);
  if (token) headers.Authorization = "Bearer " + token;
  const r = await fetch(`api/v1/${path}?${query}`, { headers, signal, cache: "no-store" });
  if (r.ok) return r;
  let detail = `status ${r.status}`;
  try {
    const p = await r.json();
    if (Array.isArray(p.errors)) {
      detail = p.errors.map((e: { parameter: string; found: string; wanted: string }) => `${e.parameter}: found ${e.found}, want ${e.wanted}`).join("; ");
    } else detail = p.detail || p.title || detail;
  } catch {
    // Not of the daemon: a proxy's page, say. The status has to do.
  }
  throw new Refused(r.status, detail);
}

const patience = 15_000;

/** get asks once. It fails with Refused, or with what fetch fails with. */
export async function get<T>(path: string, params: { [name: string]: string | undefined }): Promise<T> {
  const r = await ask(path, params, AbortSignal.timeout(patience));
  return (await r.json()) as T;
}

/**
 * follow hands over each summary of the stream, and says when there is none any
 * more; then it tries again for as long as the page is open. The daemon says
 * something every 5 s, so that a line that is silent for 12 s is dead. It is read by
 * fetch because an EventSource bears no token.
 */
export async function follow(take: (s: Summary) => void, lost: (why: unknown) => void): Promise<never> {
  for (let wait = 500; ; wait = Math.min(wait * 2, 4000)) {
    const abort = new AbortController();
    let watchdog = 0;
    const alive = (): void => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(new Error("the stream is silent")), 12_000);
    };
    try {
      alive();
      const r = await ask("stream", {}, abort.signal);
      const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ; ) {
        const { value, done } = await reader.read();
        if (done) throw new Error("the stream ended");
        alive();
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const data = text.slice(0, end).split("\n").find((line) => line.startsWith("data: "));
          text = text.slice(end + 2);
          if (data === undefined) continue;
          wait = 500;
          take(JSON.parse(data.slice(6)) as Summary);
        }
      }
    } catch (why) {
      lost(why);
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
    await new Promise((again) => setTimeout(again, wait));
  }
}
