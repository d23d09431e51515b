// Lines of many more points than there are pixels. To stroke an hour of seconds that go up
// and down costs a browser most of its time, and what is seen of it is a ribbon: in each
// column of pixels, from the least of its points to the most. That ribbon is filled instead.

import type uPlot from "uplot";

const perColumn = 2; // points in a column of pixels, from which on a line is a ribbon
const dashOn = 5, dashOff = 4; // columns at a ratio of 1

/** dense says that there are so many points in what is shown. */
export function dense(u: uPlot): boolean {
  const [from, to] = u.series[0]!.idxs!;
  return to - from > perColumn * u.bbox.width;
}

/** Style is how a ribbon is drawn: its colour, how thick it is at least, and what lies below it. */
export interface Style {
  colour: string;
  width: number; // in pixels of the screen
  below: string | null; // a colour, or nothing
  dash: boolean;
}

/**
 * ribbon draws a series. A column begins where the one before it ended, so that the ribbon
 * holds together; where there is no data for as long as a column, there is none.
 */
export function ribbon(u: uPlot, series: number, style: Style): void {
  const x = u.data[0], y = u.data[series]!, [from, to] = u.series[0]!.idxs!;
  const { ctx, bbox } = u, base = bbox.top + bbox.height, columns = Math.ceil(bbox.width) + 1;
  // Both axes are linear: a place is a value times something and something.
  const px = (scale: string, v: number): number => u.valToPos(v, scale, true);
  const x0 = u.scales.x!.min!, left = px("x", x0), dx = px("x", x0 + 1) - left, y0 = px("y", 0), dy = px("y", 1) - y0;
  const top = new Float32Array(columns).fill(Infinity), bottom = new Float32Array(columns).fill(-Infinity);
  const reach = (i: number, at: number): void => {
    if (at < top[i]!) top[i] = at;
    if (at > bottom[i]!) bottom[i] = at;
  };
  let column = -1, last: number | null = null;
  for (let i = from; i <= to; i++) {
    const v = y[i];
    if (v == null) {
      last = null;
      continue;
    }
    const at = y0 + dy * v, c = Math.floor(left + dx * (x[i]! - x0) - bbox.left);
    if (c < 0 || c >= columns) continue;
    const way = last === null ? 0 : at - last, n = c - column;
    for (let k = 1; last !== null && k <= n; k++) {
      reach(column + k, last + (way * (k - 1)) / n);
      reach(column + k, last + (way * k) / n);
    }
    reach(c, at);
    [column, last] = [c, at];
  }

  const half = style.width / 2, period = (dashOn + dashOff) * devicePixelRatio, on = dashOn * devicePixelRatio;
  const line = new Path2D(), area = new Path2D();
  const add = (path: Path2D, a: number, b: number, low: (i: number) => number, over: number): void => {
    path.moveTo(bbox.left + a, top[a]! - over);
    for (let i = a; i < b; i++) {
      path.lineTo(bbox.left + i, top[i]! - over);
      path.lineTo(bbox.left + i + 1, top[i]! - over);
    }
    for (let i = b - 1; i >= a; i--) {
      path.lineTo(bbox.left + i + 1, low(i));
      path.lineTo(bbox.left + i, low(i));
    }
    path.closePath();
  };
  for (let a = 0; a < columns; a++) {
    if (top[a] === Infinity) continue;
    let b = a;
    while (b < columns && top[b] !== Infinity) b++;
    if (style.below !== null) add(area, a, b, () => base, 0);
    for (let c = a; c < b; ) {
      const end = style.dash ? Math.min(b, Math.ceil((Math.floor(c / period) * period) + on)) : b;
      if (end > c) add(line, c, end, (i) => bottom[i]! + half, half);
      c = style.dash ? Math.max(end, Math.ceil((Math.floor(c / period) + 1) * period)) : b;
    }
    a = b;
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top - style.width, bbox.width, bbox.height + 2 * style.width);
  ctx.clip();
  if (style.below !== null) {
    ctx.fillStyle = style.below;
    ctx.fill(area);
  }
  ctx.fillStyle = style.colour;
  ctx.fill(line);
  ctx.restore();
}
