// One chart: uPlot with what all of ours share: one crosshair, bands for what is
// provisional, marks where a figure is a bound, a readout in text above, the arrow keys,
// and a gap where there is no data.

import uPlot from "uplot";
import { dense, ribbon } from "./dense";
import { h, say } from "./dom";
import { firing } from "./alerts";
import type { Column, Forecast, Frame } from "./frame";
import { clock } from "./format";

export interface Line {
  column: Column;
  label: string;
  colour: string; // the name of a CSS variable
  dash?: boolean;
  fill?: boolean;
  bound?: keyof typeof bounds; // what the figure is where a part of the records could not be judged
}

// How a bound is called, and where the marks on its line point.
const bounds = { "≥": { mark: "▲", words: "at least" }, "≤": { mark: "▼", words: "at most" } } as const;

export interface Spec {
  id: string;
  title: string;
  lines: Line[];
  format: (v: number | null) => string;
  top?: number; // of the axis, at least
  limit?: { at: number; label: string };
}

// Asking for a style makes the browser lay out what has changed, so that each is asked for
// once, and again in another theme.
const colours = new Map<string, string>();

function colour(name: string): string {
  const theme = `${document.documentElement.dataset.theme} ${name}`;
  let c = colours.get(theme);
  if (c === undefined) {
    c = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    colours.set(theme, c);
  }
  return c;
}

const linear = uPlot.paths.linear!();
const width = 1.75; // of lines
const below = "22"; // how much of a line's colour is below it

const group = "auditor"; // of all charts: they share the crosshair
const font = "12px system-ui, sans-serif";

export class Chart {
  readonly element: HTMLElement;
  private readonly host = h("div", { class: "plot", tabindex: 0, role: "group" });
  private readonly when = h("span", { class: "when" });
  private readonly values: HTMLElement[];
  private readonly nothing = h("p", { class: "nothing" });
  private readonly doubts = h("p", { class: "doubts", hidden: true });
  readonly note = h("p", { class: "note" });
  private plot: uPlot | null = null;
  private frame: Frame | null = null;
  private forecast: Forecast | null = null;
  private at: number | null = null; // index under the crosshair

  constructor(private readonly spec: Spec, private readonly zoom: (from: number, to: number) => void) {
    this.values = spec.lines.map(() => h("b"));
    const readout = spec.lines.map((line, i) =>
      h("span", { class: `key ${line.dash ? "dash" : ""} ${line.colour.slice(2)}` }, h("i"), line.label + " ", this.values[i]!));
    this.host.setAttribute("aria-label", `${spec.title}: arrow keys move the crosshair`);
    this.host.addEventListener("keydown", (e) => this.key(e));
    this.element = h("section", { class: "panel", id: spec.id, "aria-labelledby": spec.id + "-title" },
      h("h2", { id: spec.id + "-title" }, spec.title),
      h("p", { class: "readout" }, ...readout, this.when), this.host, this.nothing, this.note);
    const b = spec.lines.flatMap((l) => (l.bound ? [`${bounds[l.bound].mark} ${l.label} is ${bounds[l.bound].words} (${l.bound}) what is drawn`] : []));
    if (b.length > 0) this.note.before(this.doubts);
    say(this.doubts, `${b.join(", ")}: some records there show no departure, or have a deadline and no time to judge it by.`);
  }

  /**
   * draw shows a frame; why says what is wrong where it holds nothing. A forecast goes
   * on beyond the frame's end, by a third of it at most.
   */
  draw(f: Frame, why = "No data in this range.", forecast: Forecast | null = null): void {
    this.frame = f;
    this.forecast = forecast;
    const data = [f.x, ...this.spec.lines.map((line) => f.y[line.column])] as uPlot.AlignedData;
    const bare = this.spec.lines.every((line) => f.y[line.column].every((v) => v === null));
    this.nothing.hidden = !bare;
    say(this.nothing, bare ? why : "");
    this.doubts.hidden = !this.spec.lines.some((line) => line.bound && f.y.doubt.some((v, i) => v === 1 && f.y[line.column][i] !== null));
    if (!this.plot) this.plot = this.make(data);
    else this.plot.setData(data, false);
    const end = forecast ? Math.max(f.to, Math.min(forecast.at, f.to + (f.to - f.from) / 3)) : f.to;
    this.plot.setScale("x", { min: f.from, max: end }); // which draws
    this.read();
  }

  /** repaint takes the colours of another theme. */
  repaint(): void {
    this.plot?.redraw(false, true);
  }

  /** fit takes the width that there is. */
  fit(): void {
    const width = this.host.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
  }

  private make(data: uPlot.AlignedData): uPlot {
    const s = this.spec;
    const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false }, font };
    return new uPlot({
      width: Math.max(this.host.clientWidth, 200), height: 180, padding: [16, 8, 0, 0],
      legend: { show: false },
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      cursor: {
        // A range that is dragged is that of one chart; all get it by the URL.
        sync: { key: group, filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
        y: false, drag: { x: true, y: false }, points: { size: 6 },
      },
      select: { show: true, left: 0, top: 0, width: 0, height: 0 },
      scales: {
        x: { time: true, auto: false },
        y: { range: (_, __, max) => [0, Math.max(s.top ?? 0, (max ?? 0) * 1.1) || 1] },
      },
      axes: [
        { ...axis, size: 26, space: 70, values: (u, at) => at.map((t) => label(t, u.scales.x!.max! - u.scales.x!.min!)) },
        { ...axis, size: 58, space: 28, values: (_, at) => at.map((v) => s.format(v)) },
      ],
      series: [{}, ...s.lines.map((line): uPlot.Series => ({
        stroke: () => colour(line.colour), width, paths: (u, i, from, to) => (dense(u) ? null : linear(u, i, from, to)), spanGaps: false, points: { show: false, size: 5, fill: () => colour(line.colour), filter: lone },
        dash: line.dash ? [5, 4] : undefined,
        fill: line.fill ? () => colour(line.colour) + below : undefined,
      }))],
      hooks: {
        drawSeries: [(u, i) => this.thick(u, i)],
        drawClear: [(u) => this.bands(u)],
        draw: [(u) => this.marks(u)],
        setCursor: [(u) => { this.at = u.cursor.idx ?? null; this.read(); }],
        setSelect: [(u) => {
          if (u.select.width < 8) return;
          this.zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }, data, this.host);
  }

  /** thick draws a line of too many points to stroke. */
  private thick(u: uPlot, series: number): void {
    const l = this.spec.lines[series - 1], c = l && colour(l.colour);
    if (c && dense(u)) ribbon(u, series, { colour: c, width: width * devicePixelRatio, below: l.fill ? c + below : null, dash: l.dash ?? false });
  }

  /** bands hatches what will still change. */
  private bands(u: uPlot): void {
    const p = this.frame?.provisional;
    if (!p) return;
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    const left = Math.max(u.valToPos(p[0], "x", true), bbox.left), right = Math.min(u.valToPos(p[1], "x", true), bbox.left + bbox.width);
    if (right <= left) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.strokeStyle = colour("--hatch");
    ctx.lineWidth = ratio;
    ctx.beginPath();
    for (let x = left - bbox.height; x < right; x += 8 * ratio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
    this.text(u, "provisional", left, right);
  }

  /** marks draws where the stream begins, and the limit. */
  private marks(u: uPlot): void {
    const { ctx, bbox } = u, limit = this.spec.limit, live = this.frame?.live;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    if (limit) {
      const y = u.valToPos(limit.at, "y", true);
      ctx.strokeStyle = ctx.fillStyle = colour("--bad");
      line(ctx, bbox.left, y, bbox.left + bbox.width, y);
      ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.fillText(limit.label, bbox.left + 4 * devicePixelRatio, y - 4 * devicePixelRatio);
    }
    if (live) {
      const x = u.valToPos(live, "x", true);
      ctx.strokeStyle = colour("--soft");
      line(ctx, x, bbox.top, x, bbox.top + bbox.height);
      if (bbox.left + bbox.width - x > 30 * devicePixelRatio) this.text(u, "live", x);
    }
    this.ahead(u);
    this.bounded(u);
    this.happened(u);
    ctx.restore();
  }

  /** ahead draws the forecast, from what is newest up to the limit. */
  private ahead(u: uPlot): void {
    const f = this.forecast;
    if (!f) return;
    const { ctx } = u, end = u.scales.x!.max!, ratio = devicePixelRatio;
    const until = Math.min(f.at, end), reached = f.value + (1 - f.value) * (f.at > f.from ? (until - f.from) / (f.at - f.from) : 1);
    const x = u.valToPos(until, "x", true), y = u.valToPos(reached, "y", true);
    ctx.strokeStyle = ctx.fillStyle = colour("--bad");
    ctx.lineWidth = 2 * ratio;
    ctx.setLineDash([6 * ratio, 3 * ratio]);
    line(ctx, u.valToPos(f.from, "x", true), u.valToPos(f.value, "y", true), x, y);
    ctx.setLineDash([]);
    ctx.font = `${12 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "right";
    ctx.fillText(`gone at ${clock(f.at * 1000)}`, u.valToPos(f.from, "x", true) - 6 * ratio, u.valToPos(1, "y", true) + 14 * ratio);
  }

  /** bounded puts marks on a line where it is a bound: where that begins, and then further apart. */
  private bounded(u: uPlot): void {
    const f = this.frame!, { ctx, bbox } = u, ratio = devicePixelRatio, size = 4 * ratio, right = bbox.left + bbox.width;
    for (const l of this.spec.lines) {
      if (!l.bound) continue;
      const y = f.y[l.column], up = l.bound === "≥" ? -1 : 1;
      ctx.fillStyle = colour(l.colour);
      ctx.beginPath();
      for (let i = 0, last = -Infinity, goesOn = false; i < f.x.length; i++) {
        const v = y[i];
        if (f.y.doubt[i] !== 1 || v == null) {
          goesOn = false;
          continue;
        }
        const x = u.valToPos(f.x[i]!, "x", true);
        if (x - last < (goesOn ? 9 : 3) * size || x < bbox.left || x > right) continue;
        [last, goesOn] = [x, true];
        const top = Math.max(u.valToPos(v, "y", true) + up * size, bbox.top + size);
        ctx.moveTo(x, top + up * size);
        ctx.lineTo(x - size, top - up * size);
        ctx.lineTo(x + size, top - up * size);
      }
      ctx.fill();
    }
  }

  /** happened marks alerts: a line when each fired, and a strip for as long as it did; dotted while it is pending. */
  private happened(u: uPlot): void {
    const { ctx, bbox } = u, ratio = devicePixelRatio, right = bbox.left + bbox.width;
    const place = (at: number): number => Math.min(Math.max(u.valToPos(at, "x", true), bbox.left), right);
    this.frame?.alerts.forEach((a, i) => {
      const y = bbox.top + (2 + 4 * (i % 6)) * ratio, end = place(a.ended ?? this.frame!.to);
      ctx.strokeStyle = colour(a.critical ? "--bad" : "--warn");
      const strip = (from: number, to: number, dash: number[]): void => {
        ctx.lineWidth = 2.5 * ratio;
        ctx.setLineDash(dash);
        line(ctx, from, y, to, y);
      };
      strip(place(a.since), a.fired === null ? end : place(a.fired), [2 * ratio, 2 * ratio]);
      if (a.fired === null) return;
      strip(place(a.fired), end, []);
      const x = u.valToPos(a.fired, "x", true);
      if (x < bbox.left || x > right) return;
      ctx.lineWidth = ratio;
      ctx.setLineDash([ratio, 3 * ratio]);
      line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    });
  }

  /** text stands above the plot, from x on; before the end if it does not fit. */
  private text(u: uPlot, words: string, x: number, end = u.bbox.left + u.bbox.width): void {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.fillStyle = colour("--soft");
    ctx.textAlign = "left";
    ctx.fillText(words, Math.min(x + 3 * ratio, end - ctx.measureText(words).width - 2 * ratio), bbox.top - 3 * ratio);
    ctx.restore();
  }

  /** read says in text what is under the crosshair, or else what is newest. */
  private read(): void {
    const f = this.frame;
    if (!f) return;
    let i = this.at;
    if (i === null || i >= f.x.length) {
      i = f.x.length - 1;
      const newest = (i: number) => this.spec.lines.some((line) => f.y[line.column][i] !== null);
      while (i >= 0 && !newest(i)) i--;
    }
    const at = f.x[i];
    this.spec.lines.forEach((line, n) => say(this.values[n]!, this.value(line, i)));
    const provisional = at !== undefined && f.provisional && at > f.provisional[0] && at <= f.provisional[1];
    const coverage = f.y.coverage[i];
    say(this.when, at === undefined ? "" :
      ` · coverage ${coverage == null ? "–" : Math.round(coverage * 1000) / 10 + " %"} · ${clock(at * 1000)} UTC${provisional ? ", provisional" : ""}${firing(f.alerts, at)}`);
  }

  /** value is a figure in text, which is marked where it is a bound. */
  private value(line: Line, i: number): string {
    const f = this.frame!, v = f.y[line.column][i] ?? null;
    return (line.bound && v !== null && f.y.doubt[i] === 1 ? line.bound + " " : "") + this.spec.format(v);
  }

  private key(e: KeyboardEvent): void {
    const f = this.frame, u = this.plot;
    if (!f || !u || f.x.length === 0) return;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[e.key];
    if (e.key === "Escape") all((u) => u.setCursor({ left: -10, top: -10 }));
    if (by === undefined) return;
    e.preventDefault();
    const i = Math.min(Math.max((this.at ?? f.x.length) + by, 0), f.x.length - 1);
    all((u) => u.setCursor({ left: u.valToPos(f.x[i]!, "x"), top: 10 }));
  }
}

/** lone is the points between two gaps, which are on no line; null if there are none. */
function lone(u: uPlot, series: number): number[] | null {
  const y = u.data[series]!, found: number[] = [];
  const [from, to] = u.series[0]!.idxs!;
  for (let i = from; i <= to; i++) if (y[i] != null && y[i - 1] == null && y[i + 1] == null) found.push(i);
  return found.length > 0 ? found : null;
}

const all = (f: (u: uPlot) => void): void => uPlot.sync(group).plots.forEach(f);

function line(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function label(at: number, span: number): string {
  const s = new Date(at * 1000).toISOString();
  if (span > 36 * 3600) return s.slice(5, 16).replace("T", " ");
  return span > 1800 ? s.slice(11, 16) : s.slice(11, 19);
}
