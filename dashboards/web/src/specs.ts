// The charts of the page, in their order.

import type { Spec } from "./chart";
import { rate, share } from "./format";

export const specs: Spec[] = [
  { id: "load", title: "Originals and arrivals", format: rate, lines: [
    { column: "arrivals", label: "arrivals", colour: "--c-bad", fill: true }, { column: "originals", label: "originals", colour: "--c-good" }] },
  { id: "answers", title: "Answers and goodput", format: rate, lines: [
    { column: "answers", label: "answers", colour: "--c-bad", fill: true }, { column: "goodput", label: "goodput", colour: "--c-good", bound: "≤" }] },
  { id: "dead", title: "Dead share of answers", format: share, top: 1, lines: [
    { column: "dead", label: "dead", colour: "--c-bad", fill: true, bound: "≥" }, { column: "visibility", label: "records that could show it", colour: "--c-other", dash: true }] },
  { id: "budget", title: "Retry budget spent", format: share, top: 1.25, limit: { at: 1, label: "limit" }, lines: [
    { column: "consumed", label: "spent", colour: "--c-bad", fill: true }, { column: "consumedHigh", label: "if all unattributable were repeats", colour: "--c-other", dash: true }] },
  { id: "coverage", title: "Coverage by class", format: share, top: 1, lines: [
    { column: "attributable", label: "verified and claimed", colour: "--c-other", dash: true }, { column: "verified", label: "verified", colour: "--c-good", fill: true }] },
];
