// Sentences shown to people, stored as data: the TOML files beside the Python packages that show them.
import { brief, grouped } from "./formatting";

/** A file of sentences as the bundler imports it. */
export type TextFile = Readonly<Record<string, unknown>>;

/** Placeholders: {name}, {name:,}, {name:.2f}, {name:.3g}. Doubled braces are literal braces. */
const ROOM = /\{\{|\}\}|\{(\w+)(?::([^}]*))?\}/g;

/**
 * The sentences of one file. Top-level entries are sentences with placeholders in braces; tables hold texts that code
 * finds by a run-time name: plain strings, or pairs of a short name and a sentence.
 */
export class TextCatalogue {
  constructor(private readonly file: TextFile) {}

  /** The sentence `key` with placeholders filled in. Throws RangeError for an unknown key or placeholder. */
  say(key: string, values: Readonly<Record<string, unknown>> = {}): string {
    const sentence = this.file[key];
    if (typeof sentence !== "string") throw new RangeError(`text catalogue: no text ${key}`);
    return filled(sentence, values);
  }

  /** A table of plain strings. Throws RangeError. */
  table(name: string): Readonly<Record<string, string>> {
    return this.found(name) as Readonly<Record<string, string>>;
  }

  /** Returns a table of short names and sentences. Throws RangeError. */
  pairs(name: string): Readonly<Record<string, readonly [string, string]>> {
    return this.found(name) as Readonly<Record<string, readonly [string, string]>>;
  }

  private found(name: string): unknown {
    const table = this.file[name];
    if (typeof table !== "object" || table === null) throw new RangeError(`text catalogue: no table ${name}`);
    return table;
  }
}

/** A sentence with placeholders filled in. Throws RangeError for an unknown placeholder. */
export function filled(sentence: string, values: Readonly<Record<string, unknown>>): string {
  return sentence.replace(ROOM, (found: string, name?: string, form = "") => {
    if (name === undefined) return found.slice(1);
    if (!(name in values)) throw new RangeError(`text catalogue: no value for ${name} in: ${sentence}`);
    return formatted(values[name], form);
  });
}

function formatted(value: unknown, form: string): string {
  if (form === "") return typeof value === "number" ? pythonNumber(value) : String(value);
  const found = /^(,)?(?:\.(\d+))?([fg])?$/.exec(form);
  if (!found || typeof value !== "number") throw new RangeError(`text catalogue: unknown format ${form} for ${String(value)}`);
  const [, commas, digits, kind] = found;
  if (kind === "g") return brief(value, digits === undefined ? 6 : Number(digits));
  const places = digits === undefined ? (kind === "f" ? 6 : 0) : Number(digits);
  return commas ? grouped(value, places) : value.toFixed(places);
}

/** Formats integers as they are; no sentence of ours shows an unformatted fraction. */
function pythonNumber(value: number): string {
  return String(value);
}
