// The page: it follows the stream, asks for the rest every few seconds, and shows what
// the URL says.

import { AlertLog } from "./alerts";
import { follow, get, Refused, setToken, type Alerts, type Dependency, type Part, type Policy, type Question, type Series, type Sources, type Summary, type Top } from "./api";
import { Chart } from "./chart";
import { fill, h, say, type Child } from "./dom";
import { atLeast, clock, count, number, rate, seconds, share, times } from "./format";
import { deadOf, doubt, empty, forecast, Live, measures, originalsOf, own, stored, window as windowOf, type Frame } from "./frame";
import { specs } from "./specs";
import * as tables from "./tables";
import { budgetWords, judge } from "./verdict";
import { asked, changed, iso, part, ranges, read, selection, span, streamed, write, type Range, type View } from "./view";

/** pause is how long what is asked for may grow old: long ranges change little. */
const pause = (v: View): number => (v.range === "live" || v.range === "15m" ? 5000 : 30_000);

export class Page {
  private view: View = read(location.search);
  private summary: Summary | null = null;
  private coverageFloor: number | null = null; // null: not read yet
  private live: Live | null = null;
  private alerts = new AlertLog();
  private frame: Frame = empty(0, 1);
  private lostAt: number | null = null;
  private asked = 0; // counts the questions to the API, so that an old answer is dropped
  private timer = 0;

  // What is read out when it changes stands apart from what changes each second.
  private readonly connection = h("span", { role: "status" }, "Connecting …");
  private readonly clock = h("span");
  private readonly status = h("p", { id: "status" }, this.connection, this.clock);
  private readonly access = h("form", { id: "access", hidden: true, submit: (e) => this.enter(e) },
    h("label", { for: "token" }, "This API wants a bearer token"), h("input", { id: "token", type: "password", autocomplete: "off", required: true }), h("button", {}, "Enter"));
  private readonly word = h("strong", { id: "verdict-word", role: "status" }, "…");
  private readonly why = h("span", { id: "verdict-why" });
  private readonly who = h("p", { id: "who" });
  private readonly elsewhere = h("p", { id: "elsewhere", role: "status" });
  private readonly trust = h("p", { id: "trust" });
  private readonly tiles = h("dl", { id: "tiles" });
  private readonly verdict = h("section", { id: "verdict", class: "unknown", "aria-label": "Verdict" }, h("p", {}, this.word, " ", this.why), this.elsewhere, this.who, this.trust, this.tiles);
  private readonly dependencies = h("nav", { id: "dependencies", "aria-label": "Dependencies" });
  private readonly ranges = h("nav", { id: "ranges", "aria-label": "Time range" });
  private readonly absolute = h("form", { id: "absolute", submit: (e) => this.between(e) },
    h("label", {}, "From ", h("input", { name: "from", type: "datetime-local", step: 1, required: true })),
    h("label", {}, "to ", h("input", { name: "to", type: "datetime-local", step: 1, required: true })), h("button", {}, "Show"), " UTC");
  private readonly path = h("nav", { id: "path", "aria-label": "What is selected" });
  private readonly sort = h("p", { class: "sort" });

  private readonly charts = specs.map((s) => new Chart(s, (from, to) => this.go({ range: "abs", from: iso(from), to: iso(to) })));
  private readonly panels = {
    question: new tables.Panel("question", "One question"),
    reasons: new tables.Panel("reasons", "Why arrivals could not be attributed"),
    hops: new tables.Panel("hops", "Hops: who multiplies"),
    perQuestion: new tables.Panel("per-question", "Arrivals per question"),
    retries: new tables.Panel("retries", "Retry spacing, and what repeats follow"),
    peer: new tables.Panel("peers", "Worst peers"),
    originator: new tables.Panel("originators", "Worst originators"),
    route: new tables.Panel("routes", "Worst routes"),
    questions: new tables.Panel("questions", "Worst questions"),
    policy: new tables.Panel("policy", "Declared against measured"),
    alerts: new tables.Panel("alerts", "Alerts"),
    sources: new tables.Panel("sources", "Sources"),
  };

  /** run shows the page, for as long as it is open. */
  run(): void {
    this.paint();
    const p = this.panels;
    const inOrder = (...list: { element: HTMLElement }[]): HTMLElement[] => list.map((x) => x.element);
    document.body.append(
      h("header", {}, h("h1", {}, h("a", { href: "?" }, "auditor")), this.status, h("button", { id: "theme", type: "button", click: () => this.toggleTheme() }, "Dark / light")),
      this.access,
      h("main", {}, this.verdict, this.dependencies, h("div", { class: "bar" }, this.ranges, this.absolute), this.path,
        h("div", { class: "grid" }, ...inOrder(p.question, ...this.charts, p.reasons, p.hops, p.perQuestion, p.retries)),
        this.sort,
        h("div", { class: "grid" }, ...inOrder(p.peer, p.originator, p.route, p.questions, p.policy, p.alerts, p.sources))),
      h("footer", {}, "All times are UTC. A dash is “not known”, never 0. ", h("a", { href: "openapi.json" }, "API")),
    );
    addEventListener("popstate", () => { this.view = read(location.search); this.turn(); });
    addEventListener("keydown", (e) => this.key(e));
    addEventListener("visibilitychange", () => { if (!document.hidden) this.refresh(); });
    light.addEventListener("change", () => this.paint());
    new ResizeObserver(() => this.charts.forEach((c) => c.fit())).observe(document.body);
    setInterval(() => this.sayStatus(), 1000);
    this.turn();
    void follow((s) => this.take(s), (why) => this.lose(why));
  }

  // What is looked at.

  private go(change: Partial<View>): void {
    this.view = changed(this.view, change);
    history.pushState(null, "", write(this.view));
    this.turn();
  }

  /** link leads to another view, by its address and without loading the page again. */
  private link(change: Partial<View>, words: string, key: string, current = false): HTMLElement {
    const view = changed(this.view, change);
    return h("a", { href: write(view), "data-key": key, "aria-current": current ? "true" : undefined, click: (e) => {
      const m = e as MouseEvent;
      if (m.ctrlKey || m.metaKey || m.shiftKey || m.button !== 0) return;
      e.preventDefault();
      this.go(change);
    } }, words);
  }

  private key(e: KeyboardEvent): void {
    const at = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || at.tagName === "INPUT") return;
    const range = (["live", "15m", "1h", "24h"] as Range[])[Number(e.key) - 1];
    if (range) this.go({ range });
    else if (e.key === "t") this.toggleTheme();
    else if (e.key === "Backspace" && part(this.view)) this.go(whole);
  }

  private between(e: Event): void {
    e.preventDefault();
    const data = new FormData(e.target as HTMLFormElement);
    const at = (name: string): string => data.get(name) + "Z";
    const { range, from, to } = read("?" + new URLSearchParams({ range: "abs", from: at("from"), to: at("to") }));
    if (range === "abs") this.go({ range, from: iso(Date.parse(from!) / 1000), to: iso(Date.parse(to!) / 1000) });
  }

  /** turn shows another view. */
  private turn(): void {
    const v = this.view;
    fill(this.ranges, ...Object.entries(ranges).filter(([r]) => r !== "abs").map(([r, words], i) => {
      const a = this.link({ range: r as Range }, words, r, v.range === r);
      a.title = `Key ${i + 1}`;
      return a;
    }));
    const [from, to] = span(v, this.now());
    const inputs = this.absolute.elements as unknown as { [name: string]: HTMLInputElement };
    inputs.from!.value = iso(from).slice(0, 19);
    inputs.to!.value = iso(to).slice(0, 19);
    this.absolute.classList.toggle("current", v.range === "abs");
    const steps: Child[] = [];
    for (const name of ["route", "originator", "peer"] as const) {
      const x = v[name];
      if (x !== undefined) steps.push(h("span", {}, ` › ${name} `, h("b", {}, x === "-" && name === "originator" ? "(not attributed)" : x), " ", this.link({ [name]: undefined }, "all", "without-" + name)));
    }
    fill(this.path, ...(steps.length > 0 ? [this.link(whole, v.dependency ?? "all", "whole"), ...steps] : []));
    fill(this.sort, "Worst by ", this.link({ sort: "excess" }, "excess", "by-excess", v.sort === "excess"), " or by ",
      this.link({ sort: "seconds" }, "seconds of repeats", "by-seconds", v.sort === "seconds"));
    this.panels.question.element.hidden = v.question === undefined;
    if (v.dependency !== undefined && this.live?.dependency !== v.dependency) {
      this.live = new Live(v.dependency);
      this.alerts = new AlertLog();
      this.worst = {};
      fill(this.who);
    }
    this.others = null;
    if (this.summary) this.showSummary(this.summary);
    this.frame = empty(from, to);
    this.draw("Reading …");
    for (const x of Object.values(this.panels)) x.turn();
    this.refresh();
  }

  // The stream.

  private take(s: Summary): void {
    const before = this.summary, back = this.lostAt !== null;
    const knows = (s: Summary): boolean => s.dependencies.some((d) => d.dependency === this.view.dependency);
    this.summary = s;
    this.ahead = Date.parse(s.at) - Date.now();
    this.lostAt = null;
    this.access.hidden = true;
    if (this.view.dependency === undefined && s.dependencies.length > 0) {
      this.view.dependency = worstOf(s.dependencies);
      history.replaceState(null, "", write(this.view));
      this.turn();
    } else if (!before) this.turn(); // now that the daemon's time is known
    else if (back || (!knows(before) && knows(s))) this.refresh(); // what could not be read for as long
    this.live?.push(s);
    this.showSummary(s);
    if (streamed(this.view)) this.draw();
  }

  private ahead = 0; // how far the daemon's clock is ahead of the browser's, in milliseconds

  /** now is the daemon's time in seconds since 1970: a browser may have another. */
  private now(): number {
    return (Date.now() + this.ahead) / 1000;
  }

  private lose(why: unknown): void {
    this.lostAt ??= this.now() * 1000;
    if (why instanceof Refused && why.status === 401) this.access.hidden = false;
    this.sayStatus(why instanceof Refused ? why.message : undefined);
  }

  private because = "";

  private sayStatus(why?: string): void {
    const s = this.summary;
    if (why !== undefined) this.because = ": " + why;
    if (this.lostAt === null) {
      this.because = "";
      say(this.connection, s ? `Connected · ${s.state.replaceAll("_", " ")}` : "Connecting …");
      say(this.clock, s ? ` · ${clock(s.at)} UTC` : "");
    } else {
      say(this.connection, s ? `NO CONNECTION to the auditor since ${clock(this.lostAt)} UTC${this.because}. Everything below is of ${clock(s.at)}. Trying again.`
        : `NO CONNECTION to the auditor${this.because}. Trying again.`);
      say(this.clock, "");
    }
    document.body.classList.toggle("lost", this.lostAt !== null);
    if (this.lostAt !== null) document.title = "No connection · auditor";
  }

  private enter(e: Event): void {
    e.preventDefault();
    const input = this.access.elements.namedItem("token") as HTMLInputElement;
    setToken(input.value);
    input.value = "";
    this.refresh();
  }

  private showSummary(s: Summary): void {
    this.sayStatus();
    const now = this.view.dependency;
    fill(this.dependencies, ...s.dependencies.map((d) => {
      const j = judge(s, d, this.coverageFloor);
      const a = this.link({ ...whole, dependency: d.dependency, question: undefined }, d.dependency, d.dependency, d.dependency === now);
      a.className = j.level;
      a.append(h("small", {}, `${j.word} · ${times(windowOf(d, "10s")?.load_factor)}`));
      return a;
    }));
    this.sayElsewhere(s, now);
    const d = s.dependencies.find((d) => d.dependency === now);
    if (!d) {
      this.verdict.className = "unknown";
      say(this.word, now === undefined ? "No records yet" : "Not known");
      const state = s.state === "ready" || s.state === "warming" ? "" : `, and this instance is ${s.state.replaceAll("_", " ")}`;
      say(this.why, (now === undefined ? "no dependency has had one" : `there is no live record of ${now} here`) + state);
      fill(this.tiles);
      fill(this.who);
      say(this.trust, "");
      return;
    }
    this.showVerdict(s, d);
  }

  private others: string | null = null; // which are named; null: in links of another view

  /** sayElsewhere names other dependencies that have a storm, the worst first: the one that is looked at may be quiet. */
  private sayElsewhere(s: Summary, now: string | undefined): void {
    const load = (d: Dependency): number => number(windowOf(d, "10s")?.load_factor) ?? 0;
    const bad = s.dependencies.filter((d) => d.dependency !== now && judge(s, d, this.coverageFloor).level === "bad").sort((a, b) => load(b) - load(a));
    const names = JSON.stringify(bad.map((d) => d.dependency).sort());
    if (names === this.others) return; // it is read out when it changes, and not each second
    this.others = names;
    fill(this.elsewhere, ...(bad.length > 0 ? ["Retry storm elsewhere: ", ...bad.slice(0, 5).flatMap((d, i) => [i > 0 && ", ", this.link({ ...whole, dependency: d.dependency, question: undefined }, d.dependency, "elsewhere:" + d.dependency)]), bad.length > 5 && ` and ${bad.length - 5} more`] : []));
  }

  private showVerdict(s: Summary, d: Dependency): void {
    const j = judge(s, d, this.coverageFloor);
    const budget = this.charts[specs.findIndex((s) => s.id === "budget")]!;
    const w = windowOf(d, "10s"), closed = windowOf(d, "1m", "closed_windows"), b = own(d), words = budgetWords(d);
    this.verdict.className = j.level;
    this.who.hidden = j.level === "good" || j.level === "unknown";
    const other = j.level !== "bad" && this.elsewhere.childElementCount > 0; // a tab says if there is a storm at all
    document.title = `${other ? "Retry storm elsewhere · " : ""}${j.word} · ${d.dependency}`;
    say(this.word, j.word);
    say(this.why, `${d.dependency}: ${j.why}.`);
    this.trust.className = j.trust.length > 0 ? "warn" : "good";
    say(this.trust, j.trust.length > 0 ? "Mind: " + j.trust.join("; ") + "." : "Of what could be attributed nothing is known to be missing.");
    const tile = (name: string, value: string, more: string): HTMLElement => h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, value), h("small", {}, more)));
    const gone = forecast(d), r = w?.responses, some = doubt(r?.visibility, r?.unjudged); // of the answers not all could be judged
    say(budget.note, b ? `Now: ${count(b.spent)} of ${count(b.allowance)} (${b.model}), ${words.state}${words.when && ", " + words.when}${gone ? ", at " + clock(gone.at * 1000) : ""}.` : "There is no reading yet.");
    fill(this.tiles,
      tile("Load factor", times(w?.load_factor), `${rate(w?.arrivals_per_second)} for ${rate(w && originalsOf(w.originals_per_second, w))} originals`),
      tile("Amplification, final minute", times(closed?.amplification), closed?.to ? `of all traffic ${times(closed.amplification_low)} to ${times(closed.amplification_high)}; ended ${clock(closed.to)}` : "no second is final yet"),
      tile("Coverage", share(w?.coverage), w && w.arrivals > 0 ? `${share(w.verified / w.arrivals)} verified, ${share(w.claimed / w.arrivals)} claimed` : "no arrivals"),
      tile("Retry budget", words.left, `${words.state}${words.when ? ", " + words.when : ""}`),
      tile("Dead answers", atLeast(some, share(deadOf(r?.dead_share, r?.visibility))), `${atLeast(some || r?.untimed, seconds(r?.visibility === 0 && r.dead_seconds === 0 ? null : r?.dead_seconds))} of work for nobody; ${share(r?.visibility)} visible`),
      tile("Budget at its worst", share(b?.peak_consumed), b?.exhausted_at ? `first exhausted ${clock(b.exhausted_at)}` : number(b?.peak_consumed) === null ? "no reading yet" : "never exhausted"));
  }

  /** sayWho names who costs the most now, beside the verdict; nobody if that is not known. */
  private sayWho(kind: "peer" | "route", a: Top | null): void {
    const length = a ? (Date.parse(a.to ?? "") - Date.parse(a.from ?? "")) / 1000 : 0;
    const worst = a?.parts.reduce<Part | null>((w, x) => (x.name !== "" && x.repeats > (w?.repeats ?? 0) ? x : w), null);
    this.worst[kind] = worst && length > 0
      ? h("span", {}, `Silence ${kind} `, this.link({ [kind]: worst.name }, worst.name, "who-" + kind), `: −${rate(worst.repeats / length)} (coverage ${share(worst.coverage)}). `) : null;
    const { peer, route } = this.worst;
    fill(this.who, ...(peer || route ? [peer, route, h("small", {}, "Repeats of the last 10 s.")] : []));
  }

  private worst: { [kind: string]: HTMLElement | null } = {};

  /** draw shows the frame; why says what is wrong where it holds nothing. */
  private draw(why?: string): void {
    if (streamed(this.view)) {
      const [from, to] = span(this.view, this.summary ? Date.parse(this.summary.at) / 1000 : this.now());
      this.frame = this.live?.frame(from, to) ?? empty(from, to);
      // Of a young daemon what there is, and not nine minutes of nothing.
      const first = this.frame.x.find((_, i) => this.frame.y.arrivals[i] !== null);
      this.frame.from = Math.max(from, Math.min((first ?? from) - 5, to - 120));
    }
    this.frame.alerts = this.alerts.within(this.frame.from, this.frame.to);
    const d = this.summary?.dependencies.find((d) => d.dependency === this.view.dependency);
    const ahead = streamed(this.view) && d ? forecast(d) : null;
    const noBudget = streamed(this.view) ? undefined : "Budgets are read live: they stand under Live, of a whole dependency.";
    this.charts.forEach((c, i) => c.draw(this.frame, (specs[i]!.id === "budget" && noBudget) || why, specs[i]!.id === "budget" ? ahead : null));
  }

  // What is asked for every few seconds.

  private refresh(): void {
    clearTimeout(this.timer);
    const turn = ++this.asked;
    void this.ask(turn).then(() => {
      if (turn === this.asked) this.timer = setTimeout(() => { if (!document.hidden) this.refresh(); }, pause(this.view));
    });
  }

  private async ask(turn: number): Promise<void> {
    const v = this.view, p = this.panels, all = selection(v);
    // Of a part there are stored figures only, and of "live" the last five minutes.
    const bounds = asked(v), recent = asked(v, v.range === "live" ? 300 : undefined);
    const [from, to] = span(v, this.now()), length = v.range === "live" ? 300 : to - from;
    const over = v.range === "live" ? "of the last 5 min" : "of the range";
    const range = streamed(v) ? { window: "1m", dependency: v.dependency } : { ...recent, ...all };
    const series = { ...all, ...recent, step: Math.ceil(length / 600) * 60 + "s", limit: "1" };
    const go: tables.Go = (change, words, key) => this.link(change, words, key);

    const work: Promise<void>[] = [];
    const one = <T>(path: string, params: { [name: string]: string | undefined }, show: (a: T) => void, fail: (why: string, status?: number) => void): void => {
      const ask = async (): Promise<void> => {
        try {
          const a = await get<T>(path, params);
          if (turn === this.asked) show(a);
        } catch (why) {
          if (turn !== this.asked) return;
          const status = why instanceof Refused ? why.status : undefined;
          if (status === 401) this.access.hidden = false;
          fail(why instanceof Error ? why.message : String(why), status);
        }
      };
      work.push(ask());
    };
    const fails = (...panels: tables.Panel[]) => (why: string): void => panels.forEach((x) => x.fail(why));

    // Why there is no record yet, these may know.
    one<Alerts>("alerts", { dependency: v.dependency }, (a) => {
      this.alerts.take(a);
      tables.alerts(p.alerts, a, this.alerts);
    }, fails(p.alerts));
    one<Sources>("sources", {}, (a) => tables.sources(p.sources, a), fails(p.sources));
    if (v.dependency === undefined) {
      for (const x of Object.values(p)) if (x !== p.alerts && x !== p.sources) x.show("", tables.nothing("No records yet."));
      await Promise.all(work);
      return;
    }

    one<Series>("series", { ...series, measure: tables.breakdown }, (a) => {
      tables.hops(p.hops, a, over);
      tables.retries(p.retries, a, over);
    }, fails(p.hops, p.retries));
    one<Series>("series", { ...series, measure: tables.distribution }, (a) => {
      tables.perQuestion(p.perQuestion, a, over);
      tables.reasons(p.reasons, a, over);
    }, fails(p.perQuestion, p.reasons));
    one<Policy>("policy", { dependency: v.dependency }, (a) => {
      this.coverageFloor = a.granted.find((g) => g.route === "")?.coverage_floor ?? null;
      tables.policy(p.policy, a, v.dependency!);
    }, fails(p.policy));
    // Rows are by route and one of originator and peer: of the other nothing is known.
    const apart = v.peer !== undefined ? "peer" : v.originator !== undefined ? "originator" : undefined;
    for (const kind of ["peer", "originator", "route"] as const) {
      if (apart && kind !== apart && kind !== "route") p[kind].show("", tables.nothing(`Of one ${apart}, ${kind}s are not counted: arrivals are by route and one of the two.`));
      else one<Top>("top", { ...range, by: kind, sort: v.sort }, (a) => tables.worst(p[kind], kind, a, streamed(v), go), fails(p[kind]));
    }
    if (v.peer !== undefined) p.questions.show("", tables.nothing("Of one peer, questions are not listed: a question comes by several."));
    else one<Top>("top", { ...range, by: "question" }, (a) => tables.questions(p.questions, a, go), fails(p.questions));
    for (const kind of ["peer", "route"] as const) {
      one<Top>("top", { window: "10s", dependency: v.dependency, by: kind }, (a) => this.sayWho(kind, a), () => this.sayWho(kind, null));
    }
    if (v.question !== undefined) {
      const show = (found: Question[]): void => tables.question(p.question, v.question!, found, this.link({ question: undefined }, "Close", "close"));
      one<{ questions: Question[] }>("questions/" + encodeURIComponent(v.question), {}, (a) => show(a.questions),
        (why, status) => (status === 404 ? show([]) : p.question.fail(why)));
    }
    if (!streamed(v)) {
      one<Series>("series", { ...all, ...bounds, measure: measures, limit: "1" }, (a) => {
        this.frame = stored(a);
        this.draw();
      }, (why) => {
        this.frame = empty(from, to);
        this.draw("Could not be read: " + why);
      });
    } else if (this.live?.pending) {
      const live = this.live;
      // Without it the charts begin with the stream, which they say.
      one<Series>("series", { dependency: v.dependency, from: "-10m", step: "10s", measure: measures, limit: "1" }, (a) => {
        live.backfill(stored(a));
        this.draw();
      }, () => {});
    }
    await Promise.all(work);
  }

  // Dark and light.

  private paint(): void {
    document.documentElement.dataset.theme = localStorage.getItem(themeKey) ?? (light.matches ? "light" : "dark");
    this.charts.forEach((c) => c.repaint());
  }

  private toggleTheme(): void {
    localStorage.setItem(themeKey, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    this.paint();
  }
}

const themeKey = "auditor.theme";
const light = matchMedia("(prefers-color-scheme: light)");

/** whole leads from a part back to its dependency. */
const whole: Partial<View> = { route: undefined, originator: undefined, peer: undefined };

/** worstOf is the dependency with the most repeats a second: who opens the page wants that. */
function worstOf(list: Dependency[]): string {
  const repeats = (d: Dependency): number => Number(windowOf(d, "10s")?.repeats_per_second ?? 0);
  return list.reduce((a, b) => (repeats(b) > repeats(a) ? b : a)).dependency;
}
