// Tables and lists: who, where, how often, how far they can be believed.

import { fill, h, type Child } from "./dom";
import { atLeast, bytes, clock, count, none, number, rate, seconds, share, times, type Ratio } from "./format";
import { episode, sorted, type AlertLog } from "./alerts";
import type { Alert, Alerts, Policy, Question, Series, Sources, Top } from "./api";
import type { View } from "./view";

/** Go leads to another view: by its address, so that it opens in a tab of its own, too. */
export type Go = (change: Partial<View>, words: string, key: string) => HTMLElement;

/** Panel is a section with a title, and something in it. */
export class Panel {
  readonly body = h("div", { class: "scroll", tabindex: 0 });
  readonly note = h("p", { class: "note" });
  readonly element: HTMLElement;

  constructor(id: string, title: string) {
    this.body.setAttribute("role", "group");
    this.body.setAttribute("aria-labelledby", id + "-title");
    this.element = h("section", { class: "panel", id, "aria-labelledby": id + "-title" }, h("h2", { id: id + "-title" }, title), this.body, this.note);
  }

  private old = false; // what it shows is of another view

  /** turn says that another view is wanted now. */
  turn(): void {
    this.old = true;
  }

  /** show replaces what is in it. */
  show(note: string, ...children: Child[]): void {
    this.old = false;
    this.element.classList.remove("failed");
    fill(this.body, ...children);
    this.note.textContent = note;
  }

  /** fail says that it could not be read, and keeps what was there if it is of this view. */
  fail(why: string): void {
    if (this.old) fill(this.body);
    this.element.classList.add("failed");
    this.note.textContent = `Could not be read: ${why}${this.body.childElementCount > 0 ? ". This is what was read before." : ""}`;
  }
}

/** table has the row's name first; columns with numbers stand to the right. */
function table(heads: string[], rows: Child[][], text: string[] = []): HTMLElement {
  const side = heads.map((head, i) => (i === 0 || text.includes(head) ? undefined : "n"));
  return h("table", {},
    h("thead", {}, h("tr", {}, ...heads.map((head, i) => h("th", { scope: "col", class: side[i] }, head)))),
    h("tbody", {}, ...rows.map((cells) => h("tr", {}, ...cells.map((c, i) => h(i > 0 ? "td" : "th", { class: side[i], scope: i > 0 ? undefined : "row" }, c))))));
}

export const nothing = (words: string): HTMLElement => h("p", { class: "nothing" }, words);
const left = (n: number): string => (n > 0 ? ` ${count(n)} more are left out.` : "");
const covered = (v: Ratio): string => "coverage " + share(v);

/**
 * worst lists parts by what their retries cost. Of a live window that is said as a
 * rate: a stored range may hold time that nobody counted, and has a sum.
 */
export function worst(p: Panel, kind: "peer" | "originator" | "route", t: Top, live: boolean, go: Go): void {
  const length = live ? (Date.parse(t.to ?? "") - Date.parse(t.from ?? "")) / 1000 : 0;
  const rows = t.parts.map((x) => {
    const unknown = x.coverage === 0 || x.coverage === null; // nothing of it was attributed: its repeats are not known
    const name = x.name !== "" ? x.name : kind === "originator" ? "(not attributed)" : "(no name)";
    const value = x.name === "" && kind === "originator" ? "-" : x.name;
    const repeats = !live ? count(x.repeats) : length > 0 ? (x.repeats > 0 ? "−" : "") + rate(x.repeats / length) : none;
    return [
      value === "" ? name : go({ [kind]: value }, name, `${kind}:${value}`), times(x.load_factor),
      ...(unknown ? [none, none, none] : [repeats, count(x.excess), atLeast(x.untimed, seconds(x.repeat_seconds))]), share(x.coverage),
    ];
  });
  p.show((live ? "Silence it: how many arrivals a second there were less without its repeats, by the last minute." : "Repeats are those of the range.") + left(t.left_out),
    rows.length > 0 ? table([kind, "load", live ? "silence it" : "repeats", "excess", "repeat time", "coverage"], rows) : nothing("No arrivals in this range."));
}

/** questions lists those with the most arrivals. */
export function questions(p: Panel, t: Top, go: Go): void {
  const body = t.questions.length > 0 ? table(["question", "arrivals", "route", "originator", "peers", "first", "last"], t.questions.map((q) => [
    go({ question: q.key_hash }, q.key_hash.slice(0, 10), q.key_hash), count(q.arrivals), q.route, q.originator || none, q.peers.join(", ") || none, clock(q.first), q.live ? "goes on" : clock(q.last),
  ]), ["route", "originator", "peers"]) : nothing("No question with repeats is known here.");
  p.show(`Of what could be attributed: ${covered(t.coverage)}. Keys are shown as hashes only.${left(t.left_out)}`, body);
}

/** question is all that is known of one. */
export function question(p: Panel, hash: string, found: Question[], close: HTMLElement): void {
  const rows = found.map((q) => list(
    ["arrivals", count(q.arrivals)], ["dependency", q.dependency], ["route", q.route], ["originator", q.originator || none], ["peers", q.peers.join(", ") || none],
    ["first", clock(q.first)], ["last", clock(q.last) + (q.live ? ", goes on" : "")]));
  p.show("", h("p", {}, h("code", {}, hash), " ", close), ...(rows.length > 0 ? rows : [nothing("Nothing is known of this question: it was asked once, or is older than what is kept.")]));
}

const list = (...items: [string, string][]): HTMLElement => h("dl", {}, ...items.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)]));
const counted = (v: Ratio): number => number(v) ?? 0;

const unattributable = "unattributable.";

/** bars draws counts as bars with their figures; 1 at least fills a bar. */
const bars = (items: [string, Ratio][], full: number, words: (n: Ratio) => string): HTMLElement => h("div", { class: "bars" }, ...items.map(([name, n]) =>
  h("div", {}, h("span", {}, name), h("meter", { min: 0, max: Math.max(full, 1), value: counted(n), "aria-label": name }), h("span", { class: "n" }, words(n)))));

/** shares draws the parts of a whole. */
function shares(items: [string, number][]): HTMLElement {
  const all = items.reduce((sum, [, n]) => sum + n, 0);
  return bars(items, all, (n) => `${count(n)} · ${share(all > 0 ? counted(n) / all : null)}`);
}

/**
 * unknown says what is known where nothing has arrived in what is final of a range: not that
 * there were no repeats. It says nothing where something has.
 */
function unknown(a: Series): HTMLElement | null {
  if (counted(a.total.arrivals) > 0) return null;
  const some = a.complete_until !== null && Date.parse(a.complete_until) > Date.parse(a.from);
  return nothing(some ? "No arrivals in what is final of this range." : "Nothing is final yet: seconds are when what was slow in them is logged, too.");
}

/** reasons says why arrivals could not be attributed. */
export function reasons(p: Panel, a: Series, over: string): void {
  const v = a.total, arrivals = counted(v.arrivals);
  const known = Object.entries(v).filter(([k, n]) => k.startsWith(unattributable) && counted(n) > 0).map(([k, n]): [string, number] => [k.slice(unattributable.length).replaceAll("_", " "), counted(n)]);
  const sum = known.reduce((s, [, n]) => s + n, 0);
  p.show(`Final seconds ${over}` + (arrivals > 0 ? `: of ${count(arrivals)} arrivals ${share(sum / arrivals)} could not be attributed to a question.` : "."),
    unknown(a) ?? (known.length > 0 ? shares(known.sort((a, b) => b[1] - a[1])) : nothing("All arrivals could be attributed.")));
}

export const breakdown = [
  "hops.adjacent", "hops.above", "hops.origin", "hops.between", "hops.logger", "hops.same_peer", "retry_gap.p50", "retry_gap.p90", "retry_gap.p99",
  "repeat_after.gone", "repeat_after.5xx", "repeat_after.429_503", "repeat_after.success", "repeat_after.in_flight", "repeats", "arrivals",
].join(",");

export const distribution = [
  "per_question.p50", "per_question.p90", "per_question.p99", "per_question.max", "arrivals", "amplification_if_failed",
  ...["absent", "malformed", "unknown_originator", "forged", "expired", "not_yet_valid", "unsigned", "unchecked", "late"].map((r) => unattributable + r),
].join(",");

/** hops says where arrivals multiply. */
export function hops(p: Panel, a: Series, over: string): void {
  const v = a.total, known = (["adjacent", "above", "origin", "between", "logger"] as const).some((k) => v["hops." + k] != null);
  p.show(`Final seconds ${over}; ${covered(a.coverage)}.`, unknown(a) ?? (known ? list(
    ["The caller next to us makes", times(v["hops.adjacent"])],
    ["All above it make", times(v["hops.above"])],
    ["The originator makes", times(v["hops.origin"])],
    ["All between make", times(v["hops.between"])],
    ["The logging proxy makes", times(v["hops.logger"])],
    ["Repeats by the same peer as before", share(v["hops.same_peer"])],
  ) : nothing(counted(v.repeats) > 0 ? "Which hop multiplies is not known: no attempt numbers came, or all are 1 because a proxy rewrites them." : "No repeats, so no hop multiplies.")));
}

/** perQuestion says how many arrivals questions cost. */
export function perQuestion(p: Panel, a: Series, over: string): void {
  const v = a.total, none = unknown(a);
  p.show(`Questions that were over ${over}; ${covered(a.coverage)}.`,
    none ?? (v["per_question.max"] != null ? bars(["p50", "p90", "p99", "max"].map((k) => [k, v["per_question." + k]]), counted(v["per_question.max"]), count) : nothing("No question is over yet: that takes a horizon without an arrival of it.")),
    !none && list(["Where the first arrival failed", times(v.amplification_if_failed)]));
}

/** retries says how fast repeats come, and what they follow. */
export function retries(p: Panel, a: Series, over: string): void {
  const v = a.total, after = (["gone", "5xx", "429_503", "success", "in_flight"] as const).map((k): [string, number] => [
    { gone: "caller had left", "5xx": "error (5xx)", "429_503": "refused (429, 503)", success: "success", in_flight: "still in flight" }[k], counted(v["repeat_after." + k])]);
  const any = after.some(([, n]) => n > 0);
  p.show(`Final seconds ${over}; ${covered(a.coverage)}.`,
    unknown(a) ?? (any ? shares(after) : nothing("No repeats.")),
    any && list(["Gap between arrivals", `half within ${seconds(v["retry_gap.p50"])}, 90 % within ${seconds(v["retry_gap.p90"])}, 99 % within ${seconds(v["retry_gap.p99"])}`]));
}

/** policy compares what is declared with what is measured. */
export function policy(p: Panel, a: Policy, dependency: string): void {
  const d = a.declared, m = a.measured.find((m) => m.dependency === dependency);
  if (!d) {
    p.show("", nothing("No policy is declared: see declared in the configuration."));
    return;
  }
  const beside = (above: boolean | null | undefined): string => (above == null ? "" : above ? " · measured is ABOVE" : " · measured is within");
  p.show(m ? `Measured over ${m.window}; ${covered(m.coverage)}.` : "Nothing measured yet.", list(
    ["Measured load factor", times(m?.load_factor)],
    ["Chosen", times(d.chosen) + beside(m?.above_chosen)],
    ["Worst case of the layers", times(d.worst_case) + beside(m?.above_worst_case)],
    ...(d.affordable != null ? [["Affordable", times(d.affordable) + beside(m?.above_affordable)] as [string, string]] : []),
    ...(d.capacity_per_second != null ? [["Capacity", `${rate(d.capacity_per_second)}, ${rate(m?.arrivals_per_second)} measured${beside(m?.above_capacity)}`] as [string, string]] : []),
    ["Layers", d.layers.map((l) => `${l.name} ${l.attempts != null ? l.attempts + " attempts" : l.retries != null ? l.retries + " retries" : l.budget != null ? "budget " + share(l.budget) : ""}`.trim()).join(" → ") || none],
  ), ...d.findings.map((f) => h("p", { class: "finding" }, "Finding: " + f.text)));
}

const mostBefore = 20; // alerts that were resolved before those that are listed

/** alerts lists what is pending, fires or was resolved lately or before, and who was told. */
export function alerts(p: Panel, a: Alerts, log: AlertLog): void {
  if (!a.evaluated) {
    p.show("", nothing("Nobody evaluates alerts in this instance: an empty list would say nothing."));
    return;
  }
  const listed = new Set(a.alerts.map(episode)), before = a.past.filter((x) => !listed.has(episode(x)));
  const share = a.share ? " Others see the rest of the questions: this is what fires here." : "";
  p.show(`Marked in the charts since ${clock(log.since === null ? null : log.since * 1000)}; ${covered(a.coverage)}.${share}`,
    a.alerts.length > 0 ? h("ul", { class: "alerts" }, ...sorted(a.alerts).map(alert)) : nothing("No alert is pending or fires."),
    before.length > 0 ? table(["resolved before", "of", "fired", "resolved"], before.slice(0, mostBefore).map((x) => [x.alert, labels(x), clock(x.fired_at), clock(x.resolved_at)]), ["of"]) : "",
    before.length > mostBefore ? h("p", {}, left(before.length - mostBefore)) : "",
    a.sinks.length > 0 ? table(["told", "taken", "failed", "dropped", "error"], a.sinks.map((s) => [s.sink, count(s.taken), count(s.failed), count(s.dropped), s.error ?? none]), ["error"])
      : nothing("Nobody is told: there are no alerts.alertmanagers or webhooks."));
}

/** labels are those that name it beside its severity. */
const labels = (x: Alert): string => Object.entries(x.labels).filter(([k]) => k !== "severity").map(([k, v]) => `${k} ${v}`).join(", ");

/** alert is one of them. Its page is on another host: nothing is loaded of it before a click. */
function alert(x: Alert): HTMLElement {
  const level = x.state !== "firing" ? "unknown" : x.labels.severity === "critical" ? "bad" : "warn";
  const of = labels(x);
  const times = [`since ${clock(x.since)}`, x.fired_at ? `fired ${clock(x.fired_at)}` : "", x.resolved_at ? `resolved ${clock(x.resolved_at)}` : ""].filter((t) => t !== "").join(", ");
  const said = x.inhibited ? "nobody is told: a worse one says enough" : x.told ? "told" : "not told yet";
  const name = URL.canParse(x.runbook_url) && new URL(x.runbook_url).protocol === "https:"
    ? h("a", { href: x.runbook_url, target: "_blank", rel: "noreferrer", "data-key": `alert:${x.alert}:${of}` }, x.alert) : h("b", {}, x.alert);
  return h("li", { class: level }, h("strong", {}, `${x.state === "firing" ? "FIRES" : x.state}, ${x.labels.severity ?? "no severity"}: `), name, ` (${of}) `, h("span", {}, x.summary), " ",
    h("small", {}, `${x.description} ${times}; ${said}.`));
}

/** sources says how far what is read can be relied upon. */
export function sources(p: Panel, a: Sources): void {
  const lost = (q: { [reason: string]: number }): string => {
    const all = Object.entries(q).filter(([, n]) => n > 0);
    return all.length > 0 ? all.map(([r, n]) => `${r} ${count(n)}`).join(", ") : "0";
  };
  const sampled = a.sampling ? ` One question in ${count(1 / a.sampling.share)} is followed.` : " Every question is followed.";
  const together = a.together ? ` Late of ${a.together.sources.join(", ")} together: ${count(a.together.late)}.` : "";
  p.show(`Final until ${clock(a.complete_until)} UTC; ${covered(a.coverage)}.${sampled}${together}`, a.sources.length > 0 ? table(
    ["source", "state", "lag", "read until", "counted", "quarantined", "late", "gaps"],
    a.sources.map((s) => [s.source, s.state + (s.error ? ": " + s.error : ""), seconds(s.lag_seconds), clock(s.watermark), count(s.counted), lost(s.quarantined), count(s.late), s.gap_bytes === null ? count(s.gap_records) : bytes(s.gap_bytes)]),
    ["state", "quarantined"],
  ) : nothing("No source is known."));
}
