// SVG elements of the drawn pictures: polygons, circles, rings and lines on a canvas of 640 x 400.

export const WIDTH = 640;
export const HEIGHT = 400;
export type Point = readonly [number, number];

/** Python's '.0f': to the nearest whole number, halves to the even one, and a minus before a zero that was below. */
function whole(value: number): string {
  const floor = Math.floor(value);
  const rest = value - floor;
  const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
  const found = floor + (up ? 1 : 0);
  return found === 0 && (value < 0 || Object.is(value, -0)) ? "-0" : String(found);
}

const faint = (opacity: number) => (opacity < 1 ? ` opacity="${opacity.toFixed(2)}"` : "");
const path = (points: readonly Point[]) => `M${points.map(([x, y]) => `${whole(x)} ${whole(y)}`).join("L")}`;

/** A filled polygon. */
export function shape(points: readonly Point[], fill: string, opacity = 1): string {
  return `<path d="${path(points)}Z" fill="${fill}"${faint(opacity)}/>`;
}

/** A filled circle. */
export function disc(x: number, y: number, radius: number, fill: string, opacity = 1): string {
  return `<circle cx="${whole(x)}" cy="${whole(y)}" r="${whole(radius)}" fill="${fill}"${faint(opacity)}/>`;
}

/** A circle drawn with a stroke. */
export function ring(x: number, y: number, radius: number, stroke: string, width: number, opacity = 1): string {
  const [at, down, r] = [whole(x), whole(y), whole(radius)];
  return `<circle cx="${at}" cy="${down}" r="${r}" fill="none" stroke="${stroke}" stroke-width="${whole(width)}"${faint(opacity)}/>`;
}

/** A filled rectangle, with round corners if wanted. */
export function box(x: number, y: number, width: number, height: number, fill: string, opacity = 1, round = 0): string {
  const corners = round ? ` rx="${whole(round)}"` : "";
  const place = `x="${whole(x)}" y="${whole(y)}" width="${whole(width)}" height="${whole(height)}"`;
  return `<rect ${place} fill="${fill}"${corners}${faint(opacity)}/>`;
}

/** An open line through points. */
export function line(points: readonly Point[], stroke: string, width: number, opacity = 1): string {
  const pen = `stroke="${stroke}" stroke-width="${whole(width)}" stroke-linecap="round" stroke-linejoin="round"`;
  return `<path d="${path(points)}" fill="none" ${pen}${faint(opacity)}/>`;
}

/** An ellipse drawn with a stroke. */
export function oval(x: number, y: number, across: number, down: number, stroke: string, width: number): string {
  const place = `cx="${whole(x)}" cy="${whole(y)}" rx="${whole(across)}" ry="${whole(down)}"`;
  return `<ellipse ${place} fill="none" stroke="${stroke}" stroke-width="${whole(width)}"/>`;
}

/** A bow from one point to another, `lift` above the higher one. */
export function arc([ax, ay]: Point, [bx, by]: Point, lift: number, stroke: string, width: number): string {
  const over = `${whole((ax + bx) / 2)} ${whole(Math.min(ay, by) - lift)}`;
  const bow = `M${whole(ax)} ${whole(ay)}Q${over} ${whole(bx)} ${whole(by)}`;
  return `<path d="${bow}" fill="none" stroke="${stroke}" stroke-width="${whole(width)}"/>`;
}

/** A leaf from its foot at (x, y), `reach` to the right (or left, if negative). */
export function leaf(x: number, y: number, reach: number, length: number, fill: string): string {
  const out = `q${whole(reach * 0.4)} ${whole(-length * 0.75)} ${whole(reach)} ${whole(-length * 0.5)}`;
  const back = `q${whole(-reach * 0.3)} ${whole(length * 0.7)} ${whole(-reach)} ${whole(length * 0.5)}`;
  return `<path d="M${whole(x)} ${whole(y)}${out}${back}Z" fill="${fill}"/>`;
}
