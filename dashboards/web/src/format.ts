// Figures as text. What is not known is a dash and never 0.

export type Ratio = number | null | undefined | "unbounded";

export const none = "–";

const decimals = [0, 1, 2].map((n) => new Intl.NumberFormat("en", { maximumFractionDigits: n })); // dear to make

/** digits never rounds something to nothing. */
function digits(v: number): string {
  const a = Math.abs(v);
  if (a > 0 && a < 0.005) return v < 0 ? "> −0.01" : "< 0.01";
  return decimals[a >= 100 ? 0 : a >= 10 ? 1 : 2]!.format(v);
}

/** number is null for what is no number: not known, or unbounded. */
export const number = (v: Ratio): number | null => (typeof v === "number" ? v : null);
const or = (v: Ratio, f: (v: number) => string): string => (typeof v === "number" ? f(v) : (v ?? none));

export const count = (v: Ratio): string => or(v, digits);
export const times = (v: Ratio): string => or(v, (v) => v.toFixed(v >= 100 ? 0 : 2) + "×");
export const rate = (v: Ratio): string => or(v, (v) => digits(v) + "/s");
export const seconds = (v: Ratio): string => or(v, (v) => (v !== 0 && Math.abs(v) < 1 ? digits(v * 1000) + " ms" : digits(v) + " s"));
export const bytes = (v: Ratio): string => or(v, (v) => digits(v) + " B");

/** atLeast marks what is a lower bound if something is not known. */
export const atLeast = (unknown: number | null | undefined, text: string): string => (unknown && text !== none ? "≥ " + text : text);

/** share never rounds something to nothing, nor nearly all to all. */
export const share = (v: Ratio): string =>
  or(v, (v) => {
    const p = v * 100;
    if (p > 0 && p < 0.1) return "< 0.1 %";
    if (p > 99.9 && p < 100) return "> 99.9 %";
    return p.toFixed(p >= 100 || p === 0 ? 0 : 1) + " %";
  });

/** clock is a moment in UTC; without a date if it is of the last day. */
export function clock(t: string | number | null | undefined): string {
  if (t === null || t === undefined || t === "") return none;
  const d = new Date(t);
  if (Number.isNaN(d.getTime())) return none;
  const s = d.toISOString();
  const date = Math.abs(Date.now() - d.getTime()) > 864e5 / 2 ? s.slice(0, 10) + " " : "";
  return date + s.slice(11, 19);
}
