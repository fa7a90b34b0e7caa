// The colours of a section: one hue each, and a set of printing inks for its art.
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import sectionHues from "../../../../device_app/pages/art/hues.json";
import type { PythonRandom } from "../../feed/chance";

const HUES: Readonly<Record<string, number>> = sectionHues;
export const HUE_STEPS = 24;
const RADIANS = Math.PI / 180;

/** The section's step on the colour circle; a section without a place of its own gets one by its name. */
export function sectionHue(section: string): number {
  const name = section.trim().toLowerCase();
  return (Object.hasOwn(HUES, name) ? HUES[name] : undefined) ?? (sha256(utf8ToBytes(name))[0] ?? 0) % HUE_STEPS;
}

/** An OKLCH colour as sRGB hex (Ottosson 2020), chroma reduced until it is printable. */
export function oklch(lightness: number, chroma: number, hue: number): string {
  for (let left = chroma; ; left -= 0.01) {
    const light = linear(lightness, left, hue);
    if (left > 0 && !light.every((value) => value >= -1e-4 && value <= 1 + 1e-4)) continue;
    return `#${light.map((value) => Math.round(gamma(value) * 255).toString(16).padStart(2, "0")).join("")}`;
  }
}

function linear(lightness: number, chroma: number, hue: number): [number, number, number] {
  const a = chroma * Math.cos(hue * RADIANS);
  const b = chroma * Math.sin(hue * RADIANS);
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
}

function gamma(value: number): number {
  const cut = Math.min(Math.max(value, 0), 1);
  return cut <= 0.0031308 ? 12.92 * cut : 1.055 * cut ** (1 / 2.4) - 0.055;
}

/** Colours of one picture, from the sky to the nearest layer, and a spot colour used once. */
export interface Inks {
  readonly sky: string;
  readonly glow: string;
  readonly far: string;
  readonly middle: string;
  readonly near: string;
  readonly spot: string;
}

type Mixed = readonly [lightness: number, chroma: number, of: "hue" | "other"];
/** Noon: pale paper, clear layers. Dusk: warm sky, dark ground. Night: dark sky, lit layers. Overprint. */
const LIGHTS: readonly Readonly<Record<keyof Inks, Mixed>>[] = [
  {
    sky: [0.92, 0.03, "hue"],
    glow: [0.97, 0.02, "other"],
    far: [0.8, 0.07, "hue"],
    middle: [0.63, 0.11, "hue"],
    near: [0.42, 0.09, "hue"],
    spot: [0.7, 0.15, "other"],
  },
  {
    sky: [0.8, 0.08, "other"],
    glow: [0.92, 0.06, "other"],
    far: [0.66, 0.1, "hue"],
    middle: [0.5, 0.1, "hue"],
    near: [0.3, 0.07, "hue"],
    spot: [0.86, 0.13, "other"],
  },
  {
    sky: [0.28, 0.06, "hue"],
    glow: [0.4, 0.08, "hue"],
    far: [0.46, 0.09, "hue"],
    middle: [0.62, 0.11, "hue"],
    near: [0.82, 0.09, "hue"],
    spot: [0.83, 0.14, "other"],
  },
  {
    sky: [0.86, 0.06, "hue"],
    glow: [0.78, 0.09, "hue"],
    far: [0.72, 0.1, "other"],
    middle: [0.56, 0.13, "hue"],
    near: [0.38, 0.1, "other"],
    spot: [0.95, 0.03, "hue"],
  },
];

/** Inks around the section's hue, in one of four lights. */
export function mixInks(section: string, chance: PythonRandom): Inks {
  const hue = (sectionHue(section) * 360) / HUE_STEPS + chance.uniform(-12, 12);
  const other = hue + chance.choice([150, 180, 210, 40, -40]);
  const light = LIGHTS[chance.randrange(0, LIGHTS.length)] as (typeof LIGHTS)[number];
  const ink = ([lightness, chroma, of]: Mixed) => oklch(lightness, chroma, of === "hue" ? hue : other);
  const { sky, glow, far, middle, near, spot } = light;
  return { sky: ink(sky), glow: ink(glow), far: ink(far), middle: ink(middle), near: ink(near), spot: ink(spot) };
}
