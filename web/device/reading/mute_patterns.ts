// Matches a mute rule's words, phrase or regular expression against texts, in time proportional to their length.
//
// Regular expressions are a subset without backreferences and lookaround, run as an automaton (Thompson, 1968), so that
// no rule can hang the device. device_app/reading/mute_patterns.py lists what they know, and finds the same.
import { UNSPACED_ANY, folded } from "../store/searches";

export const PATTERN_KINDS = ["word", "phrase", "regex"] as const;
export type PatternKind = (typeof PATTERN_KINDS)[number];
export const PATTERN_CHARS = 200;
/** Only this many characters from the start of a longer text are matched. */
const TEXT_CHARS = 20_000;
const REGEX_TEXT_CHARS = 4_000;
const NODES_LIMIT = 400;
const REPEATS_LIMIT = 100;
const STEPS_KEPT = 5_000;

/** A pattern that can't be used; the message says why. */
export class PatternRefused extends Error {}

/** Tells whether a text in the form that `plain` returns matches. */
export type Matches = (text: string) => boolean;

/** A text in the form that patterns are matched against: folded, with single spaces. */
export function plain(text: string): string {
  return folded([...text].slice(0, TEXT_CHARS).join("")).split(/\s+/u).filter(Boolean).join(" ");
}

/**
 * Returns a function that tells whether a plain text matches. word: the text contains the words as whole words. phrase:
 * the text contains the characters. Throws PatternRefused.
 */
export function matcher(kind: PatternKind, pattern: string): Matches {
  if (!pattern.trim() || [...pattern].length > PATTERN_CHARS)
    throw new PatternRefused(`must have 1 to ${PATTERN_CHARS} characters`);
  if (kind === "regex") {
    const automaton = new Automaton(new Parser(pattern.trim()).whole());
    return (text) => automaton.finds(text);
  }
  const wanted = plain(pattern);
  if (kind === "phrase" || UNSPACED_ANY.test(wanted)) return (text) => text.includes(wanted);
  return (text) => hasWord(text, wanted);
}

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const before = /[\p{L}\p{N}]$/u.test(text.slice(Math.max(0, at - 2), at));
    const after = /^[\p{L}\p{N}]/u.test(text.slice(at + word.length, at + word.length + 2));
    if (!before && !after) return true;
  }
  return false;
}

type Range = readonly [low: number, high: number];

/** Ranges of code points; negated: all others. */
interface Chars {
  readonly ranges: readonly Range[];
  readonly negated: boolean;
}

function has({ ranges, negated }: Chars, code: number): boolean {
  return ranges.some(([low, high]) => low <= code && code <= high) !== negated;
}

/** A state: reads a character, or passes on without one (only there, for 'start' and 'end'). */
interface Node {
  readonly kind: "read" | "pass" | "start" | "end" | "match";
  readonly chars?: Chars;
  after: readonly number[];
}

const CLASSES: Readonly<Record<string, readonly Range[]>> = {
  d: [[48, 57]],
  w: [[48, 57], [65, 90], [95, 95], [97, 122]],
  s: [[9, 13], [32, 32]],
};
const ANY: Chars = { ranges: [[10, 10]], negated: true };
const ALPHANUMERIC = /^[0-9A-Za-z]$/;
/** Adds a part's nodes in front of the node it leads to; returns the first. */
type Part = (to: number) => number;

/** Reads a regular expression. Nodes are built from its end, each part in front of what follows it. */
class Parser {
  private readonly pattern: readonly string[];
  private at = 0;
  private readonly nodes: Node[] = [];

  constructor(pattern: string) {
    this.pattern = [...pattern];
  }

  /** The nodes and the first of them. Throws PatternRefused. */
  whole(): { nodes: readonly Node[]; first: number } {
    const part = this.either();
    if (this.at < this.pattern.length) throw new PatternRefused(`has a “${this.peek()}” too many`);
    const first = part(this.add({ kind: "match", after: [] }));
    return { nodes: this.nodes, first };
  }

  private add(node: Node): number {
    if (this.nodes.length >= NODES_LIMIT) throw new PatternRefused("is too long with its repetitions");
    return this.nodes.push(node) - 1;
  }

  private peek(ahead = 0): string {
    return this.pattern[this.at + ahead] ?? "";
  }

  private next(): string {
    const found = this.peek();
    if (!found) throw new PatternRefused("ends too early");
    this.at += 1;
    return found;
  }

  private either(): Part {
    const options = [this.sequence()];
    while (this.peek() === "|") {
      this.at += 1;
      options.push(this.sequence());
    }
    const [only] = options;
    if (options.length === 1 && only) return only;
    return (to) => this.add({ kind: "pass", after: options.map((option) => option(to)) });
  }

  private sequence(): Part {
    const parts: Part[] = [];
    while (!["", "|", ")"].includes(this.peek())) parts.push(this.repeated(this.atom()));
    return (to) => parts.reduceRight((after, part) => part(after), to);
  }

  private repeated(part: Part): Part {
    for (let sign = this.peek(); ["*", "+", "?", "{"].includes(sign); sign = this.peek()) {
      this.at += 1;
      const [least, most] = sign === "*" ? [0, null] : sign === "+" ? [1, null] : sign === "?" ? [0, 1] : this.count();
      part = this.times(part, least, most);
    }
    return part;
  }

  private count(): [least: number, most: number | null] {
    const found = /^([0-9]{1,3})(,([0-9]{0,3}))?\}/.exec(this.pattern.slice(this.at).join(""));
    if (!found) throw new PatternRefused("has a “{” without a number and “}”");
    this.at += found[0].length;
    const least = Number(found[1]);
    const most = found[2] === undefined ? least : found[3] ? Number(found[3]) : null;
    if (Math.max(least, most ?? 0) > REPEATS_LIMIT || (most !== null && most < least))
      throw new PatternRefused(`may repeat a part at most ${REPEATS_LIMIT} times`);
    return [least, most];
  }

  private times(part: Part, least: number, most: number | null): Part {
    return (to) => {
      if (most === null) {
        const node: Node = { kind: "pass", after: [] };
        const again = this.add(node);
        node.after = [part(again), to];
        to = again;
      } else {
        const end = to;
        for (let left = most - least; left > 0; left -= 1) to = this.add({ kind: "pass", after: [part(to), end] });
      }
      for (let left = least; left > 0; left -= 1) to = part(to);
      return to;
    };
  }

  private atom(): Part {
    const sign = this.next();
    if (sign === "(") {
      if (this.peek() === "?" && this.peek(1) === ":") this.at += 2;
      else if (this.peek() === "?") throw new PatternRefused("may not look ahead or behind, or name groups");
      const part = this.either();
      if (this.next() !== ")") throw new PatternRefused("has a “(” that isn't closed");
      return part;
    }
    if (sign === "[") return this.reads(this.class());
    if (sign === ".") return this.reads(ANY);
    if (sign === "^" || sign === "$") return (to) => this.add({ kind: sign === "^" ? "start" : "end", after: [to] });
    if (["*", "+", "?", "{"].includes(sign)) throw new PatternRefused(`has a “${sign}” with nothing to repeat`);
    return sign === "\\" ? this.escaped(this.next()) : this.literal(sign);
  }

  private escaped(sign: string): Part {
    const ranges = CLASSES[sign.toLowerCase()];
    if (ranges) return this.reads({ ranges, negated: sign !== sign.toLowerCase() });
    if (ALPHANUMERIC.test(sign)) throw new PatternRefused(`may not use “\\${sign}”`);
    return this.literal(sign);
  }

  private literal(sign: string): Part {
    const codes = [...folded(sign)].map((each) => each.codePointAt(0) as number);
    return (to) => codes.reduceRight((after, code) => this.reads({ ranges: [[code, code]], negated: false })(after), to);
  }

  private reads(chars: Chars): Part {
    return (to) => this.add({ kind: "read", chars, after: [to] });
  }

  private class(): Chars {
    const negated = this.peek() === "^";
    if (negated) this.at += 1;
    const ranges: Range[] = [];
    for (let sign = this.next(); sign !== "]" || !ranges.length; sign = this.next()) {
      if (sign === "\\") {
        sign = this.next();
        const known = CLASSES[sign];
        if (known) {
          ranges.push(...known);
          continue;
        }
        if (ALPHANUMERIC.test(sign)) throw new PatternRefused(`may not use “\\${sign}” in brackets`);
      }
      const low = codeOf(sign);
      let high = low;
      if (this.peek() === "-" && !["]", ""].includes(this.peek(1))) {
        this.at += 1;
        high = codeOf(this.next());
      }
      if (high < low) throw new PatternRefused("has a range that runs backwards");
      ranges.push([low, high]);
    }
    return { ranges, negated };
  }
}

function codeOf(sign: string): number {
  const same = [...folded(sign)];
  return (same.length === 1 ? (same[0] as string) : sign).codePointAt(0) as number;
}

/** The states that read a character, and whether the match is complete. */
interface States {
  readonly reading: readonly number[];
  readonly matched: boolean;
  readonly after: Map<number, States>;
}

/** Runs nodes over a text, all alternatives at once; keeps the transitions that it has computed. */
class Automaton {
  private readonly nodes: readonly Node[];
  private readonly first: number;
  private known = new Map<string, States>();
  private steps = 0;

  constructor({ nodes, first }: { nodes: readonly Node[]; first: number }) {
    this.nodes = nodes;
    this.first = first;
  }

  /** Whether the expression matches anywhere in a text. */
  finds(text: string): boolean {
    const characters = [...text].slice(0, REGEX_TEXT_CHARS).map((each) => each.codePointAt(0) as number);
    let now = this.closure([this.first], true, !characters.length);
    for (const [place, code] of characters.entries()) {
      if (now.matched) return true;
      if (place === characters.length - 1) return this.step(now, code, true).matched;
      let after = now.after.get(code);
      if (!after) {
        after = this.step(now, code, false);
        if ((this.steps += 1) > STEPS_KEPT) [this.known, this.steps] = [new Map(), 0];
        else now.after.set(code, after);
      }
      now = after;
    }
    return now.matched;
  }

  private step(now: States, code: number, atEnd: boolean): States {
    const to = [this.first];
    for (const state of now.reading) {
      const node = this.nodes[state] as Node;
      if (node.chars && has(node.chars, code)) to.push(...node.after);
    }
    return this.closure(to, false, atEnd);
  }

  private closure(states: readonly number[], atStart: boolean, atEnd: boolean): States {
    const [seen, reading, waiting] = [new Set<number>(), [] as number[], [...states]];
    let matched = false;
    for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
      if (seen.has(state)) continue;
      seen.add(state);
      const node = this.nodes[state] as Node;
      if (node.kind === "match") matched = true;
      else if (node.kind === "read") reading.push(state);
      else if (node.kind === "pass" || (node.kind === "start" ? atStart : atEnd)) waiting.push(...node.after);
    }
    reading.sort((one, other) => one - other);
    const name = `${matched} ${reading.join(" ")}`;
    const found = this.known.get(name) ?? { reading, matched, after: new Map<number, States>() };
    this.known.set(name, found);
    return found;
  }
}
