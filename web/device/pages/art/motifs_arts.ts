// Motifs of music and film: records, keys, sound waves, reels. Line by line those of device_app/pages/art/motifs_arts.py.
import { type Motif, each, turn } from "./motifs";
import { HEIGHT, WIDTH, box, disc, line, ring, shape } from "./shapes";

/** A record with its grooves and an arm across it. */
export const record: Motif = (chance, inks) => {
  const x = chance.uniform(200, 360);
  const y = chance.uniform(170, 300);
  const radius = chance.uniform(150, 210);
  const grooves = chance.randint(3, 6);
  const drawn = [disc(x, y, radius, inks.near)];
  drawn.push(...each(grooves, (k) => ring(x, y, radius * (0.94 - (0.52 * k) / grooves), inks.middle, 2.5)));
  drawn.push(disc(x, y, radius * 0.34, inks.spot), disc(x, y, radius * 0.05, inks.glow));
  const [bx, by] = [x + radius * 1.25, y - radius * chance.uniform(0.1, 0.5)];
  drawn.push(line([[bx + 20, -10], [bx, by], [x + radius * 0.6, y + radius * 0.4]], inks.far, 10));
  return [...drawn, disc(bx, by, 15, inks.far)];
};

/** Piano keys from below, one of them struck. */
export const keys: Motif = (chance, inks) => {
  const count = chance.randint(9, 13);
  const top = chance.uniform(120, 210);
  const width = WIDTH / count;
  const struck = chance.randrange(1, count - 1);
  const drawn = [box(0, top - 34, WIDTH, 34, inks.near)];
  for (let at = 0; at < count; at++)
    drawn.push(box(at * width + 1.5, top, width - 3, HEIGHT - top + 20, at === struck ? inks.spot : inks.glow, 1, 5));
  for (let at = 1; at < count; at++)
    if (at % 7 !== 3 && at % 7 !== 0)
      drawn.push(box(at * width - width * 0.29, top, width * 0.58, (HEIGHT - top) * 0.58, inks.near, 1, 4));
  const rise = chance.uniform(30, 60);
  return [...drawn, ...each(3, (k) => ring((struck + 0.5) * width, top - 60, rise * (k + 1) * 0.5, inks.middle, 3))];
};

/** A sound wave as bars around a line, swelling and falling. */
export const sound: Motif = (chance, inks) => {
  const count = chance.randint(26, 40);
  const middle = HEIGHT * chance.uniform(0.45, 0.58);
  const step = WIDTH / count;
  const swell = chance.uniform(0.8, 2.2);
  const second = chance.uniform(4, 9);
  const loud = chance.randrange(0, count);
  return each(count, (at) => {
    const share = at / count;
    const wave = Math.abs(Math.sin(share * Math.PI * swell + 0.4)) * 190;
    const height = wave + Math.abs(Math.sin(share * Math.PI * second)) * 90 + 14;
    const ink = at === loud ? inks.spot : at % 3 === 1 ? inks.middle : inks.near;
    return box(at * step + step * 0.2, middle - height / 2, step * 0.6, height, ink, 1, step * 0.3);
  });
};

/** A strip of film across the sheet, each frame with a sun or a hill of its own. */
export const reel: Motif = (chance, inks) => {
  const top = chance.uniform(70, 150);
  const height = chance.uniform(170, 220);
  const frame = chance.uniform(150, 200);
  const start = -chance.uniform(0, frame);
  const drawn = [box(-10, top, WIDTH + 20, height, inks.near)];
  for (let at = 0; at < Math.ceil((WIDTH - start) / frame); at++) {
    const x = start + at * frame;
    const [inner, ground] = [frame - 18, top + 34 + (height - 68)];
    drawn.push(box(x + 9, top + 34, inner, height - 68, turn([inks.middle, inks.far], at), 1, 4));
    const peak = x + 9 + inner * chance.uniform(0.3, 0.7);
    drawn.push(disc(peak, top + height * chance.uniform(0.36, 0.5), 20, inks.spot));
    drawn.push(shape([[x + 9, ground], [peak, ground - height * 0.28], [x + frame - 9, ground]], inks.glow, 0.8));
    for (let hole = 0; hole < 4; hole++)
      for (const edge of [top + 10, top + height - 24])
        drawn.push(box(x + 9 + (hole * frame) / 4, edge, frame / 8, 14, inks.glow, 0.9, 3));
  }
  return drawn;
};
