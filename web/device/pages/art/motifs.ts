// What the pictures show: one function a motif, each drawing SVG elements on a 640 x 400 sheet. Line by line those of
// device_app/pages/art/motifs.py, as both devices draw the same picture of the same news.
import type { PythonRandom } from "../../feed/chance";
import type { Inks } from "./colours";
import { HEIGHT, type Point, WIDTH, arc, box, disc, leaf, line, oval, ring, shape } from "./shapes";

export type Motif = (chance: PythonRandom, inks: Inks) => string[];
export const TAU = 2 * Math.PI;

/** `made` for 0, 1 ... below `count`. */
export function each<T>(count: number, made: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => made(at));
}

/** One of a few in turn. */
export function turn<T>(among: readonly T[], at: number): T {
  return among[at % among.length] as T;
}

/** Streets of houses before one another, some windows lit. */
export const skyline: Motif = (chance, inks) => {
  const drawn = [disc(chance.uniform(90, 550), chance.uniform(70, 150), chance.uniform(34, 70), inks.spot)];
  for (const [ink, low, high, wide] of [[inks.far, 150, 290, 60], [inks.middle, 90, 220, 76], [inks.near, 50, 140, 96]] as const) {
    let x = -20;
    while (x < WIDTH) {
      const width = chance.uniform(0.5, 1.2) * wide;
      const height = chance.uniform(low, high);
      drawn.push(box(x, HEIGHT - height, width, height, ink));
      if (chance.random() < 0.35) {
        const peak = chance.uniform(14, 40);
        const top = HEIGHT - height;
        drawn.push(shape([[x, top + 1], [x + width / 2, top - peak], [x + width, top + 1]], ink));
      }
      if (ink === inks.middle && chance.random() < 0.6)
        drawn.push(...each(3, (row) => box(x + width * 0.3, HEIGHT - height + 22 + 26 * row, 9, 13, inks.glow)));
      x += width + chance.choice([0, 0, 8]);
    }
  }
  return drawn;
};

/** Water in layers, a low sun, sometimes a hull. */
export const waves: Motif = (chance, inks) => {
  const sun = chance.uniform(120, 520);
  const drawn = [disc(sun, chance.uniform(120, 175), chance.uniform(46, 86), inks.spot)];
  ([[inks.far, 190], [inks.middle, 250], [inks.near, 318]] as const).forEach(([ink, level], at) => {
    const phase = chance.uniform(0, 6);
    const length = chance.uniform(90, 190);
    const swell = chance.uniform(8, 24);
    if (at === 1 && chance.random() < 0.7) {
      const x = chance.uniform(120, 440);
      drawn.push(shape([[x, 232], [x + 130, 232], [x + 108, 274], [x + 22, 274]], inks.near));
      drawn.push(...each(chance.randint(2, 4), (stack) => box(x + 24 + 22 * stack, 206, 18, 26, inks.glow)));
    }
    const crest = each(33, (step): Point => [20 * step, level + swell * Math.sin(((20 * step) / length) * TAU / 2 + phase)]);
    drawn.push(shape([...crest, [WIDTH, HEIGHT], [0, HEIGHT]], ink));
  });
  return drawn;
};

/** Ridges behind ridges, and a road or a wood in front. */
export const hills: Motif = (chance, inks) => {
  const drawn = [disc(chance.uniform(80, 560), chance.uniform(60, 140), chance.uniform(30, 60), inks.spot)];
  for (const [ink, base, rough] of [[inks.glow, 210, 80], [inks.far, 255, 66], [inks.middle, 305, 46], [inks.near, 350, 26]] as const) {
    const step = chance.choice([80, 110, 140]);
    const knots = each(Math.ceil((WIDTH + 161) / step), (at): Point => [at * step - 40, base - chance.uniform(0, rough)]);
    drawn.push(shape([...knots, [WIDTH + 120, HEIGHT], [-40, HEIGHT]], ink));
  }
  for (let left = chance.randint(0, 7); left; left--) {
    const x = chance.uniform(0, WIDTH);
    const tall = chance.uniform(40, 90);
    const tree: Point[] = [[x, HEIGHT - 30 - tall], [x + tall * 0.3, HEIGHT - 20], [x - tall * 0.3, HEIGHT - 20]];
    drawn.push(shape(tree, inks.near));
  }
  return drawn;
};

/** A body, its rings and its moons. */
export const orbits: Motif = (chance, inks) => {
  const x = chance.uniform(180, 460);
  const y = chance.uniform(140, 260);
  const core = chance.uniform(48, 92);
  const drawn = each(26, () => disc(chance.uniform(0, WIDTH), chance.uniform(0, HEIGHT), 2, inks.glow));
  const steps = chance.randint(3, 5);
  for (let step = 0; step < steps; step++) {
    const radius = core + 42 * (step + 1);
    drawn.push(ring(x, y, radius, inks.far, 2 + (step % 2) * 5, 0.7));
    const at = chance.uniform(0, TAU);
    const ink = step === 1 ? inks.spot : inks.middle;
    drawn.push(disc(x + radius * Math.cos(at), y + radius * Math.sin(at), chance.uniform(8, 22), ink));
  }
  return [...drawn, disc(x, y, core, inks.near), disc(x - core * 0.22, y - core * 0.2, core * 0.72, inks.middle, 0.75)];
};

/** A field in stripes with its lines and the flight of a ball, or lanes round a bend. */
export const pitch: Motif = (chance, inks) => {
  if (chance.random() < 0.4) {
    const x = chance.uniform(-60, 160);
    const y = chance.uniform(330, 460);
    const inner = chance.uniform(110, 170);
    const lanes = each(6, (lane) => ring(x, y, inner + 46 * lane, turn([inks.middle, inks.near], lane), 42));
    const angle = chance.uniform(-1.2, -0.5);
    const at = inner + 46 * chance.randrange(2, 5);
    return [...lanes, disc(x + at * Math.cos(angle), y + at * Math.sin(angle), 20, inks.spot)];
  }
  const slant = chance.uniform(-80, 80);
  const wide = chance.choice([60, 90, 120]);
  const drawn = each(14, (k) => {
    const [left, right] = [wide * k - 90, wide * (k + 0.5) - 90];
    return shape([[left, 0], [right, 0], [right + slant, HEIGHT], [left + slant, HEIGHT]], inks.far, 0.35);
  });
  drawn.push(
    ring(chance.uniform(60, 580), HEIGHT, chance.uniform(120, 230), inks.glow, 6),
    box(0, chance.uniform(110, 250), WIDTH, 6, inks.glow),
  );
  const reach = chance.uniform(300, 560);
  const peak = chance.uniform(150, 290);
  const flight = each(chance.randint(8, 15), (t): Point => [40 + (reach * t) / 14, 350 - peak * Math.sin((t / 16) * Math.PI)]);
  const [x, y] = flight.at(-1) as Point;
  return [...drawn, line(flight, inks.near, 5, 0.8), disc(x, y, 32, inks.near), disc(x, y, 21, inks.spot)];
};

/** Columns that rise and fall and a line over them. */
export const ledger: Motif = (chance, inks) => {
  const count = chance.randint(7, 12);
  const step = (WIDTH - 60) / count;
  let level = chance.uniform(90, 200);
  const tops: Point[] = [];
  const drawn = each(5, (k) => box(0, 60 + 70 * k, WIDTH, 2, inks.far, 0.7));
  for (let k = 0; k < count; k++) {
    level = Math.min(Math.max(level + chance.uniform(-60, 70), 40), 320);
    drawn.push(box(30 + k * step, HEIGHT - level, step * 0.72, level, turn([inks.middle, inks.near, inks.far], k)));
    tops.push([30 + k * step + step * 0.36, HEIGHT - level - chance.uniform(18, 46)]);
  }
  const [x, y] = tops.at(-1) as Point;
  return [...drawn, line(tops, inks.spot, 7), disc(x, y, 13, inks.spot)];
};

/** Stems with leaves, from one side of the sheet. */
export const leaves: Motif = (chance, inks) => {
  const drawn = [disc(chance.uniform(100, 540), chance.uniform(90, 240), chance.uniform(70, 120), inks.glow)];
  const stems = chance.randint(3, 5);
  for (let stem = 0; stem < stems; stem++) {
    const x = chance.uniform(60, 580);
    const lean = chance.uniform(-120, 120);
    const ink = turn([inks.far, inks.middle, inks.near], stem);
    const tall = chance.uniform(220, 370);
    const spine = each(9, (t): Point => [x + lean * (t / 8) ** 2, HEIGHT - (tall * t) / 8]);
    drawn.push(line(spine, ink, 5));
    spine.slice(1).forEach(([px, py], before) => {
      const at = before + 1;
      const long = (10 - at) * 11 + 12;
      drawn.push(leaf(px, py, (at % 2 ? 1 : -1) * long, long, ink));
    });
  }
  const berries = chance.randint(3, 8);
  return [...drawn, ...each(berries, () => disc(chance.uniform(60, 580), chance.uniform(60, 300), 9, inks.spot))];
};

/** Beams from above, a curtain's edge, arcs of seats. */
export const stage: Motif = (chance, inks) => {
  const drawn: string[] = [];
  for (let left = chance.randint(2, 4); left; left--) {
    const x = chance.uniform(60, 580);
    const foot = chance.uniform(80, 560);
    const spread = chance.uniform(60, 130);
    drawn.push(shape([[x - 8, 0], [x + 8, 0], [foot + spread, 330], [foot - spread, 330]], inks.glow, 0.45));
  }
  const x = chance.uniform(220, 420);
  drawn.push(disc(x, 300, 34, inks.spot), box(x - 26, 300, 52, 100, inks.spot));
  drawn.push(...each(4, (k) => ring(WIDTH / 2, 690, 380 - 46 * k, turn([inks.near, inks.middle], k), 30)));
  const edge = chance.choice([0, 1]);
  const curtain = (k: number) => box(edge * (WIDTH - 130) + k * 34, -10, 26, HEIGHT, turn([inks.far, inks.middle], k), 0.9, 12);
  return [...drawn, ...each(4, curtain)];
};

/** Tracks with right angles between pads. */
export const circuit: Motif = (chance, inks) => {
  const drawn: string[] = [];
  const tracks = chance.randint(9, 14);
  for (let k = 0; k < tracks; k++) {
    let x = chance.randrange(1, 16) * 40;
    let y = chance.randrange(1, 10) * 40;
    const points: Point[] = [[x, y]];
    const turns = chance.randint(2, 4);
    for (let bend = 0; bend < turns; bend++) {
      const far = chance.choice([-160, -80, 80, 160]);
      if ((bend + k) % 2) x += far;
      else y += far;
      points.push([x, y]);
    }
    const ink = turn([inks.far, inks.middle, inks.near], k);
    const [px, py] = points[0] as Point;
    drawn.push(line(points, ink, 9), disc(px, py, 14, ink), disc(px, py, 6, inks.sky));
  }
  const x = chance.randrange(3, 10) * 40;
  const y = chance.randrange(2, 6) * 40;
  return [...drawn, box(x, y, 150, 110, inks.near, 1, 10), box(x + 22, y + 20, 106, 70, inks.spot, 1, 6)];
};

/** A house of columns under a gable, or a chamber of seats. */
export const columns: Motif = (chance, inks) => {
  if (chance.random() < 0.45) {
    const x = chance.uniform(240, 400);
    const drawn: string[] = [];
    for (let row = 0; row < 5; row++) {
      const [radius, seats] = [90 + row * 52, 7 + row * 3];
      for (let seat = 0; seat < seats; seat++) {
        const at = (Math.PI * (seat + 0.5)) / seats;
        const ink = chance.random() < 0.12 ? inks.spot : seat < seats * 0.55 ? inks.middle : inks.near;
        drawn.push(disc(x + radius * Math.cos(at), 372 - radius * Math.sin(at), 15, ink));
      }
    }
    return [...drawn, box(x - 34, 330, 68, 70, inks.near, 1, 4)];
  }
  const count = chance.randint(4, 7);
  const left = chance.uniform(40, 110);
  const wide = chance.uniform(420, 520);
  const top = chance.uniform(150, 190);
  const drawn = [disc(left + wide * chance.random(), 110, chance.uniform(50, 90), inks.spot, 0.9)];
  drawn.push(
    shape([[left - 20, top], [left + wide / 2, top - 90], [left + wide + 20, top]], inks.middle),
    box(left, top, wide, 26, inks.near),
    box(left - 30, 352, wide + 60, 18, inks.near),
    box(left - 60, 370, wide + 120, 30, inks.middle),
  );
  const step = wide / count;
  const column = (k: number) => box(left + step * (k + 0.25), top + 26, step * 0.5, 352 - top - 26, k % 2 ? inks.far : inks.middle);
  return [...drawn, ...each(count, column)];
};

/** A sphere with meridians and routes across it. */
export const globe: Motif = (chance, inks) => {
  const x = chance.uniform(220, 420);
  const y = chance.uniform(180, 240);
  const radius = chance.uniform(130, 190);
  const drawn = [disc(x, y, radius, inks.far)];
  drawn.push(...each(4, (k) => oval(x, y, (radius * (k + 1)) / 5, radius, inks.glow, 3)));
  for (const down of [-radius * 0.6, 0, radius * 0.6]) {
    const half = Math.sqrt(radius ** 2 - down ** 2);
    drawn.push(line([[x - half, y + down], [x + half, y + down]], inks.glow, 3));
  }
  const spots = each(5, (): Point => [chance.uniform(30, 610), chance.uniform(40, 360)]);
  drawn.push(...each(4, (at) => arc(spots[at] as Point, spots[at + 1] as Point, 80, inks.near, 5)));
  return [...drawn, ...spots.map(([px, py], k) => disc(px, py, 12, k ? inks.spot : inks.near))];
};

/** Books on a shelf, leaning, or one lying open. */
export const pages: Motif = (chance, inks) => {
  const drawn = [disc(chance.uniform(80, 560), chance.uniform(60, 140), chance.uniform(40, 80), inks.glow)];
  let x = 30;
  while (x < 600) {
    const width = chance.uniform(28, 70);
    const tall = chance.uniform(150, 280);
    const ink = chance.choice([inks.far, inks.middle, inks.near, inks.middle, inks.spot]);
    const lean = chance.random() < 0.25 ? chance.uniform(-14, 14) : 0;
    drawn.push(shape([[x + lean, 350 - tall], [x + lean + width, 350 - tall], [x + width, 350], [x, 350]], ink));
    drawn.push(box(x + lean * 0.8 + 8, 350 - tall * 0.8, width - 16, 8, inks.sky, 0.8));
    x += width + (lean ? chance.uniform(20, 60) : 3);
  }
  return [...drawn, box(0, 350, WIDTH, 50, inks.near)];
};

/** A sun or moon, clouds, and rain on some days. */
export const sky: Motif = (chance, inks) => {
  const drawn = [disc(chance.uniform(120, 520), chance.uniform(90, 190), chance.uniform(60, 100), inks.spot)];
  for (const ink of [inks.glow, inks.far, inks.middle]) {
    const x = chance.uniform(40, 440);
    const y = chance.uniform(130, 280);
    const grow = chance.uniform(0.8, 1.5);
    for (const [dx, dy, r] of [[0, 0, 38], [48, -20, 50], [104, -6, 42], [146, 8, 28]] as const)
      drawn.push(disc(x + dx * grow, y + dy * grow, r * grow, ink));
    drawn.push(box(x - 36 * grow, y + 2, 210 * grow, 36 * grow, ink, 1, 18));
  }
  if (chance.random() < 0.6) {
    for (let drop = 0; drop < 26; drop++) {
      const x = chance.uniform(0, WIDTH);
      const y = chance.uniform(240, 400);
      drawn.push(line([[x, y], [x - 14, y + 34]], inks.near, 4, 0.7));
    }
  }
  return drawn;
};

/** A way to the horizon, rails or lanes. */
export const road: Motif = (chance, inks) => {
  const far = chance.uniform(160, 480);
  const level = chance.uniform(150, 210);
  const drawn = [
    disc(chance.uniform(80, 560), level - 30, chance.uniform(40, 80), inks.spot),
    box(0, level, WIDTH, HEIGHT, inks.middle),
  ];
  drawn.push(shape([[0, level], [180, level - chance.uniform(30, 90)], [WIDTH, level]], inks.far));
  const left = chance.uniform(-80, 160);
  const right = chance.uniform(480, 720);
  drawn.push(shape([[far - 5, level], [far + 5, level], [right, HEIGHT], [left, HEIGHT]], inks.near));
  for (let step = 0; step < 5; step++) {
    const [a, b] = [(step / 5) ** 1.8, ((step + 0.5) / 5) ** 1.8];
    const middle = (left + right) / 2;
    const [y1, y2] = [level + a * (HEIGHT - level), level + b * (HEIGHT - level)];
    const [x1, x2] = [far + (middle - far) * a, far + (middle - far) * b];
    const mark: Point[] = [[x1 - 1 - 9 * a, y1], [x1 + 1 + 9 * a, y1], [x2 + 1 + 9 * b, y2], [x2 - 1 - 9 * b, y2]];
    drawn.push(shape(mark, inks.glow));
  }
  return drawn;
};

/** Plates and what lies on them, from above. */
export const table: Motif = (chance, inks) => {
  const drawn = each(8, (k) => box(k * 80, 0, 40, HEIGHT, inks.glow, 0.5));
  const plates: Point[] = [
    [chance.uniform(120, 240), chance.uniform(120, 260)],
    [chance.uniform(390, 520), chance.uniform(120, 290)],
  ];
  for (const [x, y] of plates) {
    const radius = chance.uniform(90, 130);
    drawn.push(disc(x, y, radius, inks.far), disc(x, y, radius * 0.76, inks.sky));
    const count = chance.randint(4, 7);
    for (let k = 0; k < count; k++) {
      const at = chance.uniform(0, TAU);
      const out = chance.uniform(0, radius * 0.45);
      const ink = turn([inks.middle, inks.near, inks.spot], k);
      drawn.push(disc(x + out * Math.cos(at), y + out * Math.sin(at), chance.uniform(14, 32), ink));
    }
  }
  const x = chance.uniform(290, 340);
  return [...drawn, box(x, 70, 12, 260, inks.near, 1, 6), box(x - 14, 60, 40, 70, inks.near, 1, 14)];
};
