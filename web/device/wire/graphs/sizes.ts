// Sizes of tensors whose axes are free: whole numbers, or polynomials in the names of axes, with their bounds.
import { GraphRefused } from "./message";

const TERMS_LIMIT = 12;
const TERMS_OF_A_SUM_LIMIT = 256;
const DEGREE_LIMIT = 6;
export const NUMBER_LIMIT = 2n ** 62n;

/** By the name of an axis: its least and its greatest size, neither below 0. */
export type Bounds = ReadonlyMap<string, readonly [bigint, bigint]>;
export type Size = bigint | Polynomial;

interface Term {
  readonly axes: readonly string[];
  readonly number: bigint;
}

/** A sum of products of free axes. */
export class Polynomial {
  private words: string | null = null;

  /** terms: by their axes' names, joined; never one without axes alone, which is a whole number. */
  constructor(readonly terms: ReadonlyMap<string, Term>) {}

  /** One axis. */
  static of(axis: string): Polynomial {
    return new Polynomial(new Map([[axis, { axes: [axis], number: 1n }]]));
  }

  /** The same for equal polynomials alone. */
  toString(): string {
    return (this.words ??= [...this.terms.values()]
      .sort((one, other) => compared(one.axes, other.axes))
      .map(({ axes, number }) => [number, ...axes].join("*"))
      .join(" + "));
  }
}

export function isFixed(size: Size): size is bigint {
  return typeof size === "bigint";
}

export function equal(one: Size, other: Size): boolean {
  return one === other || (typeof one === typeof other && String(one) === String(other));
}

/** Throws GraphRefused for more than 12 terms, 6 factors, or numbers beyond 2^62 where an axis is free. */
export function plus(one: Size, other: Size): Size {
  if (isFixed(one) && isFixed(other)) return one + other;
  const total = new Map<string, Term>();
  for (const term of [...termsOf(one), ...termsOf(other)]) added(total, term.axes, term.number);
  return made(total);
}

export function minus(one: Size, other: Size): Size {
  return plus(one, times(other, -1n));
}

/** As `plus`. */
export function times(one: Size, other: Size): Size {
  if (isFixed(one) && isFixed(other)) return one * other;
  if (one === 1n) return other;
  if (other === 1n) return one;
  const total = new Map<string, Term>();
  for (const { axes, number } of termsOf(one))
    for (const another of termsOf(other)) added(total, [...axes, ...another.axes].sort(), number * another.number);
  return made(total);
}

/** All of them multiplied; 1 for none. */
export function product(sizes: readonly Size[]): Size {
  return sizes.reduce(times, 1n);
}

/** Sizes and how often each counts. */
export class Weighted {
  private readonly all = new Map<string, { readonly size: Size; weight: bigint }>();

  add(size: Size, weight: bigint): void {
    const known = this.all.get(String(size));
    if (known) known.weight += weight;
    else this.all.set(String(size), { size, weight });
  }

  /** The sum of sizes, each times its weight: of as many terms as there are kinds of tensors. */
  total(): Size {
    const total = new Map<string, Term>();
    for (const { size, weight } of this.all.values())
      for (const { axes, number } of termsOf(size)) added(total, axes, number * weight);
    return made(total, TERMS_OF_A_SUM_LIMIT);
  }
}

/** total / part, where part is one term that divides each of total's; else null. */
export function quotient(total: Size, part: Size): Size | null {
  const [divisor, ...more] = termsOf(part);
  if (!divisor || more.length) return equal(total, part) ? 1n : null;
  if (!divisor.number) return null;
  const found = new Map<string, Term>();
  for (const { axes, number } of termsOf(total)) {
    const left = [...axes];
    for (const axis of divisor.axes) {
      const at = left.indexOf(axis);
      if (at < 0) return null;
      left.splice(at, 1);
    }
    if (number % divisor.number) return null;
    found.set(left.join(), { axes: left, number: number / divisor.number });
  }
  return made(found);
}

/** Between what and what it lies. */
export function bounds(size: Size, axes: Bounds): [bigint, bigint] {
  let [low, high] = [0n, 0n];
  for (const { axes: names, number } of termsOf(size)) {
    let [least, most] = [number, number];
    for (const axis of names) {
      const [smallest, largest] = axes.get(axis) as readonly [bigint, bigint];
      [least, most] = [least * smallest, most * largest];
    }
    low += least < most ? least : most;
    high += least < most ? most : least;
  }
  return [low, high];
}

/** As the Python device writes a list of them. */
export function listed(sizes: Iterable<Size | number>): string {
  return `[${[...sizes].join(", ")}]`;
}

function termsOf(size: Size): readonly Term[] {
  return isFixed(size) ? [{ axes: [], number: size }] : [...size.terms.values()];
}

function added(total: Map<string, Term>, axes: readonly string[], number: bigint): void {
  const key = axes.join();
  total.set(key, { axes, number: (total.get(key)?.number ?? 0n) + number });
}

function made(terms: ReadonlyMap<string, Term>, limit = TERMS_LIMIT): Size {
  const kept = new Map([...terms].filter(([, { number }]) => number));
  if (!kept.size) return 0n;
  const all = [...kept.values()];
  if (kept.size > limit || all.some(({ axes }) => axes.length > DEGREE_LIMIT))
    throw new GraphRefused(`a size has more than ${limit} terms or ${DEGREE_LIMIT} factors`);
  if (all.some(({ number }) => number > NUMBER_LIMIT || -number > NUMBER_LIMIT)) throw new GraphRefused("a size is beyond 2^62");
  const constant = kept.get("");
  return kept.size === 1 && constant ? constant.number : new Polynomial(kept);
}

function compared(one: readonly string[], other: readonly string[]): number {
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    const [first, second] = [one[at] as string, other[at] as string];
    if (first !== second) return first < second ? -1 : 1;
  }
  return one.length - other.length;
}
