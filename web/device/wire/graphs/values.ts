// What is known of a tensor before the graph runs, and what a node's rule may ask for.
import { GraphRefused } from "./message";
import { type Bounds, NUMBER_LIMIT, type Size, bounds, equal, isFixed, listed, product } from "./sizes";

export const FLOAT = 1;
export const INT32 = 6;
export const INT64 = 7;
export const BOOL = 9;
export const DOUBLE = 11;
const WIDTHS_BYTES: Readonly<Record<number, bigint>> = { [FLOAT]: 4n, [INT32]: 4n, [INT64]: 8n, [BOOL]: 1n, [DOUBLE]: 8n };
const SHOWN: Readonly<Record<number, string>> = {
  [FLOAT]: "float32",
  [INT32]: "int32",
  [INT64]: "int64",
  [BOOL]: "bool",
  [DOUBLE]: "float64",
};
export const RANK_LIMIT = 8;
/** Longer lists are no shapes: what stands in them isn't followed. */
export const CONTENT_LIMIT = 1_024;

export type Shape = readonly Size[];
export type Attribute = bigint | string | readonly bigint[] | Uint8Array | undefined;

/**
 * A tensor. content: its whole numbers, if it has one axis or none and they follow from constants and shapes alone.
 * ofMask: it follows from these and the mask of clicks alone. some: not all of it is zero, whatever is fed.
 */
export interface KnownTensor {
  readonly element: number;
  readonly shape: Shape;
  readonly content?: Shape | null;
  readonly ofMask?: boolean;
  readonly some?: boolean;
}

/** How many numbers it holds. */
export function countOf(value: KnownTensor): Size {
  return product(value.shape);
}

/** Bytes of one number of a type that `shownType` knows. */
export function widthOf(element: number): bigint {
  return WIDTHS_BYTES[element] ?? 0n;
}

/** The name of a type of numbers; none for types that no graph of a release has. */
export function shownType(element: number): string | undefined {
  return SHOWN[element];
}

/** One node as its rule sees it: what it is given, and what was found out about all before it. */
export class GraphNode {
  multiplyAdds: Size = 0n;
  scratchBytes: Size = 0n;

  /** free: axes that the graph itself makes, and the greatest size of each. */
  constructor(
    readonly operator: string,
    readonly inputs: readonly (KnownTensor | null)[],
    readonly outputs: number,
    readonly attributes: ReadonlyMap<string, Attribute>,
    readonly axes: Map<string, readonly [bigint, bigint]>,
    readonly free: Map<string, Size>,
  ) {}

  /** Throws GraphRefused. */
  refuse(why: string): never {
    throw new GraphRefused(why);
  }

  /** An input that must be there. */
  given(place: number): KnownTensor {
    return this.inputs[place] ?? this.refuse(`its input ${place} is missing`);
  }

  /** An input that may be left out. */
  maybe(place: number): KnownTensor | null {
    return this.inputs[place] ?? null;
  }

  /** An attribute that is a whole number. */
  number(name: string, otherwise: number): bigint {
    const found = this.attributes.get(name);
    return typeof found === "bigint" ? found : BigInt(otherwise);
  }

  /** Whether nothing but constants, shapes and the mask of clicks is behind its inputs. */
  ofMask(): boolean {
    return this.inputs.every((each) => !each || each.ofMask === true);
  }

  /** An input that says sizes, starts or axes: constant, or made from shapes. */
  sizes(place: number): Shape {
    const value = this.given(place);
    if (!value.content || value.element !== INT64)
      this.refuse(`its input ${place}, which says a shape or a place, depends on what is fed`);
    if (value.shape.length !== 1 && this.operator !== "CumSum") this.refuse(`its input ${place} is no list`);
    return value.content;
  }

  /** As `sizes`, and constant. */
  numbers(place: number): readonly bigint[] {
    const found = this.sizes(place);
    return found.every(isFixed) ? found : this.refuse(`its input ${place} must be constant`);
  }

  /** Between what and what a size lies, whatever is fed. */
  bounds(size: Size): [bigint, bigint] {
    return bounds(size, this.axes as Bounds);
  }

  /** An axis counted from the first. */
  axis(number: bigint, rank: number): number {
    if (number < -rank || number >= rank) this.refuse(`it names axis ${number} of ${rank}`);
    return Number(number) < 0 ? Number(number) + rank : Number(number);
  }

  /** Refuses shapes that differ. */
  same(one: Shape, other: Shape, what: string): void {
    if (!sameShape(one, other)) this.refuse(`${what} have shapes ${listed(one)} and ${listed(other)}`);
  }
}

export function sameShape(one: Shape, other: Shape): boolean {
  return one.length === other.length && one.every((size, at) => equal(size, other[at] as Size));
}

/** The shape that broadcasting gives. */
export function joined(node: GraphNode, ...shapes: readonly Shape[]): Size[] {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  const result: Size[] = new Array<Size>(rank).fill(1n);
  for (const shape of shapes)
    for (const [at, size] of shape.entries()) {
      const place = at + rank - shape.length;
      if (size === 1n || equal(size, result[place] as Size)) continue;
      if (result[place] !== 1n)
        node.refuse(`its inputs have shapes [${shapes.map(listed).join(", ")}], which don't go together`);
      result[place] = size;
    }
  return result;
}

/** The size, which is at least `low` whatever is fed, and no larger than 2^62. */
export function within(node: GraphNode, size: Size, low: bigint): Size {
  const [least, most] = node.bounds(size);
  if (least < low || most > NUMBER_LIMIT)
    node.refuse(`a size lies between ${least} and ${most}, allowed are ${low} to ${NUMBER_LIMIT}`);
  return size;
}
