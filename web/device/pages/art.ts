// Drawn pictures of news: layers in the hue of their section, arranged by the id. Nothing is fetched for them, and none
// shows a thing, so none shows the wrong one.
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { sectionHue } from "./filters";

const WIDTH = 640;
const HEIGHT = 400;
const STEP_DEGREES = 15;
/** Sky, its other end, three layers from far to near, and the spot, as lightness and chroma: noon, dusk, night. */
const LIGHTS = [
  { sky: [92, 3], glow: [97, 2], layers: [[80, 7], [63, 11], [42, 9]], spot: [70, 15] },
  { sky: [80, 8], glow: [92, 6], layers: [[66, 10], [50, 10], [30, 7]], spot: [86, 13] },
  { sky: [28, 6], glow: [40, 8], layers: [[46, 9], [62, 11], [82, 9]], spot: [83, 14] },
] as const;
type Ink = readonly [number, number];

/** An SVG document, 640 x 400, the same for the same news on every day. */
export function draw(section: string, newsId: string): string {
  const seed = sha256(utf8ToBytes(`${section.trim().toLowerCase()}\0${newsId}`));
  let taken = 0;
  const share = () => (seed[taken++ % seed.length] ?? 0) / 255;
  const light = LIGHTS[Math.floor(share() * LIGHTS.length) % LIGHTS.length] ?? LIGHTS[0];
  const hue = sectionHue(section) * STEP_DEGREES + share() * 24 - 12;
  const other = hue + (share() < 0.5 ? 160 : 40);
  const ink = ([lightness, chroma]: Ink, degrees: number) => `oklch(${lightness}% ${chroma / 100} ${degrees.toFixed(0)})`;
  const x = (at: number) => Math.round(at * WIDTH);
  const y = (at: number) => Math.round(at * HEIGHT);
  const layers = light.layers.map((layer, index) => {
    const top = 0.38 + 0.18 * index;
    const [left, middle, right] = [share(), share(), share()].map((height) => y(top + 0.2 * height - 0.1));
    const bend = x(0.3 + 0.4 * share());
    return `<path fill="${ink(layer, hue)}" d="M0 ${left}Q${bend} ${middle} ${WIDTH} ${right}V${HEIGHT}H0z"/>`;
  });
  const spot = `<circle cx="${x(0.15 + 0.7 * share())}" cy="${y(0.14 + 0.2 * share())}" r="${Math.round(26 + 40 * share())}" fill="${ink(light.spot, other)}"/>`;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="xMidYMid slice">` +
    `<linearGradient id="s" x2="0" y2="1"><stop stop-color="${ink(light.sky, hue)}"/>` +
    `<stop offset="1" stop-color="${ink(light.glow, other)}"/></linearGradient>` +
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="url(#s)"/>${spot}${layers.join("")}</svg>`
  );
}

/** The picture as an address that holds it. */
export function dataAddress(drawn: string): string {
  return `data:image/svg+xml,${encodeURIComponent(drawn)}`;
}
