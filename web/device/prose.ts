// Sentences that people read, kept as data: the TOML files beside the Python packages that show them.
import { brief, grouped } from "./figures";

/** A file of sentences as the bundler gives it. */
export type ProseFile = Readonly<Record<string, unknown>>;

/** What a sentence has room for: {name}, or {name:,}, {name:.2f}, {name:.3g}. Doubled braces are braces. */
const ROOM = /\{\{|\}\}|\{(\w+)(?::([^}]*))?\}/g;

/**
 * The sentences of one file. At the top stand sentences with room in braces for what is filled in; a table holds words
 * by name where code finds the name at run time: plain strings, or pairs of a short name and a sentence.
 */
export class Prose {
  constructor(private readonly file: ProseFile) {}

  /** The sentence `key`, filled in. Throws RangeError for a key or a name in braces that isn't there. */
  say(key: string, values: Readonly<Record<string, unknown>> = {}): string {
    const sentence = this.file[key];
    if (typeof sentence !== "string") throw new RangeError(`prose: no sentence ${key}`);
    return sentence.replace(ROOM, (found: string, name?: string, form = "") => {
      if (name === undefined) return found.slice(1);
      if (!(name in values)) throw new RangeError(`prose: ${key} has no ${name}`);
      return formatted(values[name], form);
    });
  }

  /** A table of plain strings. Throws RangeError. */
  table(name: string): Readonly<Record<string, string>> {
    return this.found(name) as Readonly<Record<string, string>>;
  }

  /** A table of short names and sentences. Throws RangeError. */
  pairs(name: string): Readonly<Record<string, readonly [string, string]>> {
    return this.found(name) as Readonly<Record<string, readonly [string, string]>>;
  }

  private found(name: string): unknown {
    const table = this.file[name];
    if (typeof table !== "object" || table === null) throw new RangeError(`prose: no table ${name}`);
    return table;
  }
}

function formatted(value: unknown, form: string): string {
  if (form === "") return typeof value === "number" ? pythonNumber(value) : String(value);
  const found = /^(,)?(?:\.(\d+))?([fg])?$/.exec(form);
  if (!found || typeof value !== "number") throw new RangeError(`prose: no form ${form} for ${String(value)}`);
  const [, commas, digits, kind] = found;
  if (kind === "g") return brief(value, digits === undefined ? 6 : Number(digits));
  const places = digits === undefined ? (kind === "f" ? 6 : 0) : Number(digits);
  return commas ? grouped(value, places) : value.toFixed(places);
}

/** Whole numbers as they are; no sentence of ours shows a bare fraction. */
function pythonNumber(value: number): string {
  return String(value);
}
