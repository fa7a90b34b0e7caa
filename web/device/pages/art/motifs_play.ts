// Motifs of sport and play, of markets, crime, cars and cells, and the sheet of a newspaper for all the rest. Line by line
// those of device_app/pages/art/motifs_play.py.
import { type Motif, TAU, each, turn } from "./motifs";
import { HEIGHT, type Point, WIDTH, arc, box, disc, line, ring, shape } from "./shapes";

/** A backboard with its ring and net, and a ball on the way to it. */
export const basket: Motif = (chance, inks) => {
  const x = chance.uniform(390, 520);
  const y = chance.uniform(120, 190);
  const drawn = [box(0, 340, WIDTH, 60, inks.far), line([[0, 340], [WIDTH, 340]], inks.glow, 4)];
  drawn.push(ring(x, 400, chance.uniform(120, 200), inks.glow, 4));
  drawn.push(box(x + 42, y - 96, 16, 130, inks.near, 1, 4), box(x + 58, y - 20, 26, HEIGHT, inks.near));
  const half = 46;
  drawn.push(...each(5, (step) => line([[x - half + step * 23, y + 4], [x - 26 + step * 13, y + 74]], inks.glow, 3)));
  drawn.push(line([[x - half + 8, y + 30], [x + half - 8, y + 30]], inks.glow, 2));
  drawn.push(box(x - half, y, 2 * half, 8, inks.middle, 1, 4));
  const size = chance.uniform(44, 62);
  const ball: Point = [chance.uniform(110, 260), chance.uniform(90, 210)];
  const [bx, by] = ball;
  drawn.push(arc(ball, [x, y - 10], chance.uniform(40, 90), inks.far, 4), disc(bx, by, size, inks.spot));
  const first = chance.uniform(-0.7, 0.7);
  for (const angle of [first, first + Math.PI / 2]) {
    const [dx, dy] = [size * Math.cos(angle), size * Math.sin(angle)];
    drawn.push(line([[bx - dx, by - dy], [bx + dx, by + dy]], inks.near, 4));
  }
  return drawn;
};

/** A bicycle from the side, on a road that climbs a little. */
export const wheels: Motif = (chance, inks) => {
  const rise = chance.uniform(-26, 26);
  const radius = chance.uniform(78, 96);
  const left = chance.uniform(150, 190);
  const right = chance.uniform(420, 470);
  const ground = 350;
  const back: Point = [left, ground - radius - rise];
  const front: Point = [right, ground - radius + rise];
  const drawn = [disc(chance.uniform(80, 560), chance.uniform(60, 120), chance.uniform(34, 60), inks.glow)];
  const slope: Point[] = [[0, ground - rise * 2], [WIDTH, ground + rise * 2], [WIDTH, HEIGHT + 40], [0, HEIGHT + 40]];
  drawn.push(shape(slope, inks.far));
  const spokes = chance.randint(6, 9);
  for (const [x, y] of [back, front]) {
    drawn.push(ring(x, y, radius, inks.near, 9), disc(x, y, 9, inks.near));
    const spoke = (k: number): Point => [x + radius * Math.cos((k * TAU) / spokes), y + radius * Math.sin((k * TAU) / spokes)];
    drawn.push(...each(spokes, (k) => line([[x, y], spoke(k)], inks.middle, 2)));
  }
  const middle: Point = [(back[0] + front[0]) / 2 - 20, (back[1] + front[1]) / 2 + 6];
  const seat: Point = [middle[0] - 36, middle[1] - 112];
  const head: Point = [front[0] - 34, front[1] - 112];
  for (const path of [[back, middle, head, seat, middle], [seat, back], [head, front]])
    drawn.push(line(path, inks.near, 14), line(path, inks.spot, 7));
  drawn.push(line([[seat[0] - 34, seat[1] - 14], [seat[0] + 26, seat[1] - 14]], inks.near, 13));
  drawn.push(line([head, [head[0] - 6, head[1] - 28], [head[0] + 34, head[1] - 30]], inks.near, 10));
  return [...drawn, disc(middle[0], middle[1], 18, inks.near)];
};

const BLOCKS: readonly (readonly Point[])[] = [
  [[0, 0], [1, 0], [2, 0], [1, 1]],
  [[0, 0], [0, 1], [1, 1], [1, 2]],
  [[0, 0], [0, 1], [0, 2], [1, 2]],
];

/** A board with its pieces, or blocks of a screen falling into place. */
export const board: Motif = (chance, inks) => {
  const drawn: string[] = [];
  if (chance.random() < 0.5) {
    const side = 80;
    const ahead = chance.choice([0, 1]);
    for (let row = 0; row < 5; row++)
      for (let column = 0; column < 8; column++)
        if ((row + column) % 2 === ahead) drawn.push(box(column * side, row * side, side, side, inks.far));
    for (const place of chance.sample(each(40, (at) => at), chance.randint(6, 10))) {
      const [x, y] = [(place % 8) * side + 40, Math.floor(place / 8) * side + 40];
      const ink = chance.choice([inks.near, inks.middle, inks.spot]);
      drawn.push(disc(x, y, 28, ink), ring(x, y, 17, inks.glow, 3));
    }
    return drawn;
  }
  const side = 40;
  for (let column = 0; column < 16; column++) {
    const rows = chance.randint(1, 5);
    for (let row = 0; row < rows; row++) {
      const ink = turn([inks.near, inks.middle, inks.far], row + column);
      drawn.push(box(column * side + 2, HEIGHT - (row + 1) * side + 2, side - 4, side - 4, ink, 1, 4));
    }
  }
  const x = chance.randrange(3, 12);
  for (const [dx, dy] of chance.choice(BLOCKS))
    drawn.push(box((x + dx) * side + 2, (1 + dy) * side + 2, side - 4, side - 4, inks.spot, 1, 4));
  return drawn;
};

/** Prices by the day: a bar from opening to close, a stroke from low to high. */
export const candles: Motif = (chance, inks) => {
  const count = chance.randint(14, 20);
  const step = WIDTH / count;
  let level = chance.uniform(160, 240);
  const drawn = each(4, (k) => box(0, 80 + 80 * k, WIDTH, 2, inks.far, 0.7));
  for (let k = 0; k < count; k++) {
    const after = Math.min(Math.max(level + chance.uniform(-56, 56), 70), 330);
    const [x, low, high] = [(k + 0.5) * step, Math.max(level, after), Math.min(level, after)];
    const ink = after > level ? inks.near : inks.middle;
    const reach = chance.uniform(8, 34);
    drawn.push(line([[x, high - reach], [x, low + reach]], ink, 3));
    const last = k === count - 1 ? inks.spot : ink;
    drawn.push(box(x - step * 0.3, high, step * 0.6, Math.max(low - high, 6), last, 1, 2));
    level = after;
  }
  return drawn;
};

/** The lines of a fingertip under a lens. */
export const prints: Motif = (chance, inks) => {
  const x = chance.uniform(210, 360);
  const y = chance.uniform(160, 220);
  const radius = chance.uniform(120, 150);
  const drawn = each(8, (k) => box(0, 60 + 44 * k, WIDTH, 2, inks.far, 0.6));
  drawn.push(disc(x, y, radius, inks.glow));
  const ridges = chance.randint(6, 8);
  for (let k = 0; k < ridges; k++) {
    const [across, down] = [12 + 15 * k, 16 + 19 * k];
    const tip = chance.uniform(0.2, 0.5);
    const [wide, high] = [across * 0.7, down * 0.62];
    const ridge = each(25, (t): Point => {
      const at = Math.PI * (tip + ((2 - 2 * tip + 0.6) * t) / 24);
      return [x + wide * Math.cos(at), y + 10 - high * Math.sin(at)];
    });
    drawn.push(line(ridge, inks.near, 6));
  }
  drawn.push(ring(x, y, radius, inks.near, 16));
  const angle = chance.uniform(0.5, 0.9);
  const [sx, sy] = [x + (radius + 8) * Math.cos(angle), y + (radius + 8) * Math.sin(angle)];
  return [...drawn, line([[sx, sy], [sx + 190 * Math.cos(angle), sy + 190 * Math.sin(angle)]], inks.spot, 30)];
};

/** Cells side by side as under a microscope, some of them dividing. */
export const cells: Motif = (chance, inks) => {
  const drawn: string[] = [];
  for (let row = 0; row < 4; row++)
    for (let column = 0; column < 6; column++) {
      const x = 60 + column * 112 + (row % 2) * 50 + chance.uniform(-14, 14);
      const y = 52 + row * 104 + chance.uniform(-12, 12);
      const size = chance.uniform(40, 54);
      drawn.push(disc(x, y, size, turn([inks.far, inks.middle], row + column), 0.85));
      const ink = chance.random() < 0.15 ? inks.spot : inks.near;
      if (chance.random() < 0.25) drawn.push(disc(x - 15, y, 12, ink), disc(x + 15, y, 12, ink));
      else drawn.push(disc(x + chance.uniform(-10, 10), y + chance.uniform(-10, 10), size * 0.34, ink));
    }
  return drawn;
};

/** A car from the side on its road. */
export const car: Motif = (chance, inks) => {
  const x = chance.uniform(90, 170);
  const y = chance.uniform(262, 290);
  const long = chance.uniform(330, 400);
  const tall = chance.uniform(78, 104);
  const drawn = [disc(chance.uniform(90, 560), chance.uniform(60, 130), chance.uniform(36, 66), inks.glow)];
  drawn.push(box(0, y + 40, WIDTH, HEIGHT, inks.far));
  drawn.push(...each(5, (k) => box(k * 130 + chance.uniform(0, 16), 372, 70, 7, inks.glow)));
  const [over, roof] = [y - 46, y - tall - 30];
  drawn.push(
    shape([[x + long * 0.2, over], [x + long * 0.34, roof], [x + long * 0.68, roof], [x + long * 0.86, over]], inks.near),
    box(x, y - 52, long, 84, inks.spot, 1, 26),
  );
  const [sill, pane] = [y - 50, y - tall - 14];
  const glass: Point[] = [[x + long * 0.27, sill], [x + long * 0.37, pane], [x + long * 0.5, pane], [x + long * 0.5, sill]];
  drawn.push(shape(glass, inks.sky));
  for (const wheel of [x + long * 0.2, x + long * 0.79])
    drawn.push(disc(wheel, y + 32, 40, inks.near), disc(wheel, y + 32, 17, inks.glow));
  return drawn;
};

/** A sheet of a newspaper, its headline and columns as bars: what is shown where nothing else is known. */
export const paper: Motif = (chance, inks) => {
  const x = chance.uniform(90, 190);
  const tall = chance.uniform(330, 380);
  const drawn = [box(x + 22, 52, 330, tall, inks.far, 1, 4), box(x, 36, 330, tall + 20, inks.glow, 1, 4)];
  drawn.push(box(x + 22, 60, chance.uniform(190, 286), 24, inks.near, 1, 3));
  drawn.push(box(x + 22, 94, chance.uniform(110, 230), 14, inks.middle, 1, 3));
  const picture = chance.choice([0, 1]);
  drawn.push(box(x + 22 + picture * 148, 130, 138, 96, inks.spot, 1, 3));
  for (const column of [0, 1]) {
    const top = column === picture ? 240 : 134;
    const bar = (row: number) => box(x + 22 + column * 148, top + 18 * row, chance.uniform(100, 138), 8, inks.middle, 0.8, 3);
    drawn.push(...each(Math.floor((HEIGHT - top) / 18), bar));
  }
  return drawn;
};
