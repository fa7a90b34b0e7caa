// Checks which graphs a release may contain: only those whose control flow doesn't depend on data. Rules and error
// texts are those of protocol/graph_check.py. Sizes are numbers, exact up to 2^53; larger ones are rejected.
import table from "../../../protocol/graphs.toml";
import { CLICKS_LIMIT } from "./recall";

const TABLE = table as unknown as {
  readonly masks: readonly unknown[];
  readonly flags: readonly string[];
  readonly limits: Readonly<Record<"opset" | "oldest_ir" | "newest_ir" | "file_bytes" | "numbers" | "nodes" | "name_chars" | "rank" | "content" | "degree" | "axis" | "run_bytes" | "run_multiply_adds", number>>;
  readonly axes: Readonly<Record<string, number>>;
  readonly operators: Readonly<Record<string, readonly (Partial<Operator> & { readonly names: string })[]>>;
};
const LIMITS = TABLE.limits;
const [SIZE_LIMIT, FAR] = [2 ** 53, 2 ** 31 - 1];
/** The cost of moving or adding a number, in multiply-adds of a matrix product. */
const CHEAP = 8;
/** The free axes and their largest sizes in what a device runs daily. */
const AXES_OF_A_RUN: Readonly<Record<string, number>> = { ...TABLE.axes, clicks: CLICKS_LIMIT };
const REAL = "real";
const [FLOAT, INT32, INT64, BOOL, DOUBLE] = [1, 6, 7, 9, 11];
const WIDTHS_BYTES = new Map([[FLOAT, 4], [INT32, 4], [INT64, 8], [BOOL, 1], [DOUBLE, 8]]);

/** A graph was refused. The message is a sentence fragment that names the place and the limit. */
export class GraphRefused extends Error {}

// The file format: protobuf, with the fields of onnx.proto that our graphs use. A list marks a repeated field.
type Kind = "integer" | "name" | "bytes" | "float" | Fields;
type Fields = { readonly [number: string]: readonly [name: string, kind: Kind | readonly [Kind]] };
const AXIS: Fields = { 1: ["size", "integer"], 2: ["name", "name"] };
const TENSOR_TYPE: Fields = { 1: ["element", "integer"], 2: ["shape", { 1: ["axes", [AXIS]] }] };
const DECLARED: Fields = { 1: ["name", "name"], 2: ["type", { 1: ["tensor", TENSOR_TYPE] }] };
const TENSOR: Fields = { 1: ["dims", ["integer"]], 2: ["element", "integer"], 8: ["name", "name"], 9: ["raw", "bytes"] };
const ATTRIBUTE: Fields = {
  ...{ 1: ["name", "name"], 2: ["f", "float"], 3: ["i", "integer"], 4: ["s", "name"], 8: ["ints", ["integer"]] },
  20: ["type", "integer"],
};
const NODE: Fields = {
  ...{ 1: ["inputs", ["name"]], 2: ["outputs", ["name"]], 3: ["name", "name"], 4: ["operator", "name"] },
  ...{ 5: ["attributes", [ATTRIBUTE]], 7: ["domain", "name"] },
};
const GRAPH: Fields = {
  ...{ 1: ["nodes", [NODE]], 2: ["name", "name"], 5: ["initializers", [TENSOR]], 11: ["inputs", [DECLARED]] },
  12: ["outputs", [DECLARED]],
};
const OPERATOR_SET: Fields = { 1: ["domain", "name"], 2: ["version", "integer"] };
const MODEL: Fields = { 1: ["ir_version", "integer"], 7: ["graph", GRAPH], 8: ["operator_sets", [OPERATOR_SET]] };

/** Field name -> value: absent fields are undefined, repeated ones always present. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Parsed = Record<string, any>;

class WireReader {
  private at = 0;
  private numbers = 0;

  constructor(private readonly content: Uint8Array) {}

  message(end: number, fields: Fields, where: string): Parsed {
    const found: Parsed = {};
    for (const [name, kind] of Object.values(fields)) if (Array.isArray(kind)) found[name] = [];
    while (this.at < end) {
      const key = this.varint(end, where);
      const [number, wire] = [key >> 3n, Number(key & 7n)];
      const field = fields[String(number)];
      if (!field) throw new GraphRefused(`${where} has field ${number}, which a release's graph may not contain`);
      const [name, kind] = field;
      const path = `${where}.${name}`;
      if (!isRepeated(kind)) {
        if (name in found) throw new GraphRefused(`${path} appears twice`);
        found[name] = this.value(end, wire, kind, path);
      } else if (kind[0] === "integer" && wire === 2) {
        const last = this.span(end, path); // packed
        while (this.at < last) found[name].push(signed(this.varint(last, path)));
      } else found[name].push(this.value(end, wire, kind[0], path));
    }
    return found;
  }

  private value(end: number, wire: number, kind: Kind, path: string): unknown {
    const wanted = kind === "integer" ? 0 : kind === "float" ? 5 : 2;
    if (wire !== wanted) throw new GraphRefused(`${path} is written as wire type ${wire}, not ${wanted}`);
    if (kind === "integer") return signed(this.varint(end, path));
    const last = kind === "float" ? this.at + 4 : this.span(end, path);
    if (last > end) throw new GraphRefused(`${path} is cut off`);
    if (typeof kind !== "string") return this.message(last, kind, path);
    const part = this.content.subarray(this.at, last);
    this.at = last;
    if (kind !== "name") return part;
    // names appear in logs and pages
    if (part.length > LIMITS.name_chars || !part.every((byte) => byte >= 0x20 && byte < 0x7f))
      throw new GraphRefused(`${path} is not a name of at most ${LIMITS.name_chars} printable ASCII characters`);
    return String.fromCharCode(...part);
  }

  /** Reads a part's length here and returns where the part ends. */
  private span(end: number, path: string): number {
    const length = this.varint(end, path);
    if (length > BigInt(end - this.at)) throw new GraphRefused(`${path} is longer than the message around it`);
    return this.at + Number(length);
  }

  private varint(end: number, path: string): bigint {
    if (++this.numbers > LIMITS.numbers) throw new GraphRefused(`it has more than ${LIMITS.numbers} numbers`);
    let value = 0n;
    for (let place = 0; place < 10; place++) {
      if (this.at >= end) throw new GraphRefused(`${path} is cut off`);
      const byte = this.content[this.at++] as number;
      value |= BigInt(byte & 0x7f) << BigInt(7 * place);
      if (byte >= 0x80) continue;
      if ((place && !byte) || value >= 1n << 64n) break;
      return value;
    }
    throw new GraphRefused(`${path} has a number that is not written in the shortest way`);
  }
}

const isRepeated = (kind: Kind | readonly [Kind]): kind is readonly [Kind] => Array.isArray(kind);
const signed = (value: bigint): number => Number(BigInt.asIntN(64, value));

/** An integer times free axes, whose names are sorted. */
type Size = readonly [number: number, axes: readonly string[]];
type Shape = readonly Size[];
/** By product of axes: their names and multiplicity. */
type Terms = ReadonlyMap<string, Size>;
const ONE: Size = [1, []];
const fixed = (number: number): Size => [number, []];
const isFree = ([, axes]: Size): boolean => axes.length > 0;
const equal = (one: Size | undefined, other: Size | undefined): boolean =>
  one !== undefined && other !== undefined && one[0] === other[0] && one[1].join("*") === other[1].join("*");
const total = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** The product: the number of elements of a tensor of this shape. */
function times(sizes: Shape): Size {
  const number = sizes.reduce((all, size) => all * size[0], 1);
  const axes = sizes.flatMap((size) => size[1]).sort();
  if (!(number <= SIZE_LIMIT) || axes.length > LIMITS.degree)
    throw new GraphRefused(`a size is beyond 2^53, or has more than ${LIMITS.degree} factors`);
  return [number, axes];
}

/** whole / part if that is an integer for any axes. */
function quotient(whole: Size, part: Size): Size | null {
  const left = [...whole[1]];
  for (const axis of part[1]) {
    const at = left.indexOf(axis);
    if (at < 0) return null;
    left.splice(at, 1);
  }
  return part[0] < 1 || whole[0] % part[0] ? null : [whole[0] / part[0], left];
}

/** The size for given lengths of the axes. */
const bound = ([number, names]: Size, axes: ReadonlyMap<string, number>): number =>
  names.reduce((all, name) => all * (axes.get(name) ?? 0), number);

/**
 * A tensor before the graph runs. content: its integers, if it has at most one axis and they are constants or sizes.
 * ofMask: it depends only on constants, shapes and a mask. some: it has a nonzero element for all inputs.
 */
interface KnownTensor {
  readonly element: number;
  readonly shape: Shape;
  readonly content?: Shape | null;
  readonly ofMask?: boolean;
  readonly some?: boolean;
}

/** One node of the graph, as passed to its operator's rule. made: axes created by the graph, each a sum of terms. */
class GraphNode {
  multiplyAdds: Size = fixed(0);
  scratchBytes: Size = fixed(0);

  constructor(
    readonly inputs: readonly (KnownTensor | null)[],
    readonly outputs: number,
    readonly attributes: ReadonlyMap<string, unknown>,
    readonly made: Map<string, Terms>,
  ) {}

  refuse(why: string): never {
    throw new GraphRefused(why);
  }

  /** A required input. */
  given(place: number): KnownTensor {
    return this.inputs[place] ?? this.refuse(`its input ${place} is missing`);
  }

  /** An integer attribute. */
  number(name: string, otherwise: number): number {
    return (this.attributes.get(name) as number | undefined) ?? otherwise;
  }

  /** An input with sizes, starts or axes: it must be constant, or computed from shapes. */
  sizes(place: number): Shape {
    const { content, element } = this.given(place);
    if (!content || element !== INT64)
      this.refuse(`its input ${place}, which says a shape or a place, depends on what is fed`);
    return content;
  }

  /** Like `sizes`, and constant. */
  numbers(place: number): number[] {
    if (this.sizes(place).some(isFree)) this.refuse(`its input ${place} must be constant`);
    return this.sizes(place).map(([number]) => number);
  }

  /** The attribute `axis`, as a non-negative index into the first input's axes. */
  axis(otherwise = 0): number {
    return this.place(this.number("axis", otherwise));
  }

  /** An axis of the first input as a non-negative index. */
  place(axis: number): number {
    const rank = this.given(0).shape.length;
    if (axis < -rank || axis >= rank) this.refuse(`it names an axis that is not among ${rank}`);
    return axis < 0 ? axis + rank : axis;
  }

  /** Returns the sum of sizes plus a number, as one term or a new axis named by its terms. */
  sumOf(sizes: Shape, more = 0): Size {
    const all = new Map<string, Size>([["", fixed(more)]]);
    for (const size of sizes) {
      const [number, axes] = size;
      const known = number === 1 && axes.length === 1 && !axes[0]?.startsWith(REAL) ? this.made.get(axes[0] as string) : null;
      for (const [each, names] of known?.values() ?? [size])
        all.set(names.join("*"), [(all.get(names.join("*"))?.[0] ?? 0) + each, names]);
    }
    const terms = new Map([...all].filter(([, [number]]) => number).sort(([one], [other]) => (one < other ? -1 : 1)));
    if ([...terms.values()].some(([number]) => Math.abs(number) > SIZE_LIMIT)) this.refuse("a size is beyond 2^53");
    if (terms.size < 2) return [...terms.values()][0] ?? fixed(0);
    const name = [...terms.values()].map(([number, axes]) => [number, ...axes].join("*")).join("+");
    this.made.set(name, terms);
    return [1, [name]];
  }

  /** The shape that broadcasting gives. */
  joined(...shapes: readonly Shape[]): Size[] {
    const rank = Math.max(...shapes.map((shape) => shape.length));
    const result = new Array<Size>(rank).fill(ONE);
    for (const shape of shapes)
      for (const [at, size] of shape.entries()) {
        const place = at + rank - shape.length;
        if (equal(result[place], ONE)) result[place] = size;
        else if (!equal(size, ONE) && !equal(size, result[place])) this.refuse("its inputs have shapes that don't go together");
      }
    return result;
  }
}

type Rule = (node: GraphNode) => KnownTensor[];

const same: Rule = (node) => [{ element: node.given(0).element, shape: node.given(0).shape }];
const elementwise: Rule = (node) => [
  { element: node.given(0).element, shape: node.joined(node.given(0).shape, node.given(1).shape) },
];
const comparison: Rule = (node) => elementwise(node).map(({ shape }) => ({ element: BOOL, shape }));
const where: Rule = (node) => [
  { element: node.given(1).element, shape: node.joined(...[0, 1, 2].map((place) => node.given(place).shape)) },
];

const cast: Rule = (node) => {
  const [value, to] = [node.given(0), node.number("to", 0)];
  if (!WIDTHS_BYTES.has(to)) node.refuse("it makes numbers of another type");
  return [{ element: to, shape: value.shape, content: value.element === INT64 && to === FLOAT ? value.content : null }];
};

const shape: Rule = (node) => {
  const axes = node.given(0).shape;
  const sizes = axes.slice(node.number("start", 0), node.number("end", axes.length));
  return [{ element: INT64, shape: [fixed(sizes.length)], content: sizes }];
};

/** 0 keeps the source's axis; one -1 takes the remainder. */
const reshape: Rule = (node) => {
  const value = node.given(0);
  const is = (size: Size, number: number) => !isFree(size) && size[0] === number;
  const wanted = node.sizes(1).map((size, place) => (is(size, 0) ? (value.shape[place] ?? node.refuse("it keeps no axis")) : size));
  const known = wanted.filter((size) => !is(size, -1));
  const left = known.every(([number]) => number > 0) ? quotient(times(value.shape), times(known)) : null;
  if (!left || known.length < wanted.length - 1 || (known.length === wanted.length && !equal(left, ONE)))
    return node.refuse("its shape can't be made of what is given, whatever is fed");
  return [{ element: value.element, shape: wanted.map((size) => (is(size, -1) ? left : size)), some: value.some ?? false }];
};

const squeeze: Rule = (node) => {
  const { element, shape: sizes, content } = node.given(0);
  if (node.inputs.length > 1 || sizes.some(isFree)) node.refuse("which axes it takes away depends on what is fed");
  return [{ element, shape: sizes.filter((size) => !equal(size, ONE)), content: content ?? null }];
};

const unsqueeze: Rule = (node) => {
  const [{ element, shape: given }, named] = [node.given(0), node.numbers(1)];
  const sizes = [...given];
  if (new Set(named).size < named.length || named.some((place) => place < 0 || place >= given.length + named.length))
    node.refuse("it names an axis twice, or one that there is not");
  for (const place of [...named].sort((one, other) => one - other)) sizes.splice(place, 0, ONE);
  return [{ element, shape: sizes }];
};

const transpose: Rule = (node) => {
  const { element, shape: sizes } = node.given(0);
  const order = (node.attributes.get("perm") ?? []) as number[];
  if ([...order].sort((one, other) => one - other).join() !== [...sizes.keys()].join())
    node.refuse("its perm must name each axis once");
  return [{ element, shape: order.map((place) => sizes[place] as Size) }];
};

const put = (sizes: Shape, axis: number, size: Size): Shape => sizes.map((each, place) => (place === axis ? size : each));

const concat: Rule = (node) => {
  const parts = node.inputs.map((_, place) => node.given(place));
  const [axis, rank] = [node.axis(LIMITS.rank), node.given(0).shape.length];
  if (parts.some((each) => each.shape.length !== rank)) node.refuse("its inputs are of different ranks");
  const beside = node.joined(...parts.map((each) => put(each.shape, axis, ONE)));
  const all = node.sumOf(parts.map((each) => each.shape[axis] as Size));
  const content = parts.flatMap((each) => each.content ?? []);
  const known = rank === 1 && parts.every((each) => each.content) && content.length <= LIMITS.content;
  const some = parts.some((each) => each.some);
  return [{ element: node.given(0).element, shape: put(beside, axis, all), content: known ? content : null, some }];
};

const split: Rule = (node) => {
  const [{ element, shape: sizes }, lengths, axis] = [node.given(0), node.numbers(1), node.axis()];
  if (lengths.some((each) => each < 1) || !equal(fixed(total(lengths)), sizes[axis]))
    node.refuse("it splits an axis into pieces that don't make it");
  return lengths.map((each) => ({ element, shape: put(sizes, axis, fixed(each)) }));
};

/** From a position: to another one for a fixed axis, to the end for a free one. */
const slice: Rule = (node) => {
  const { element, shape: given } = node.given(0);
  const [starts, ends, named] = [node.numbers(1), node.numbers(2), node.numbers(3)];
  if (new Set([starts.length, ends.length, named.length, new Set(named).size]).size > 1 || [...starts, ...ends, ...named].some((each) => each < 0))
    node.refuse("its starts, ends and axes are not equally many, or count from the end");
  if (node.inputs.length > 4 && (node.numbers(4).length !== starts.length || node.numbers(4).some((step) => step !== 1)))
    node.refuse("it takes steps");
  const sizes = [...given];
  for (const [at, each] of named.entries()) {
    const [place, start, end] = [node.place(each), starts[at] as number, ends[at] as number];
    const size = sizes[place] as Size;
    if (!isFree(size)) sizes[place] = fixed(Math.max(0, Math.min(end, size[0]) - start));
    else if (end < FAR) node.refuse("it takes a part of an axis whose length depends on what is fed");
    else sizes[place] = node.sumOf([size], -start);
  }
  return [{ element, shape: sizes }];
};

const pad: Rule = (node) => {
  const [{ element, shape: sizes }, widths] = [node.given(0), node.numbers(1)];
  if (widths.length !== 2 * sizes.length || widths.some((each) => each < 0))
    node.refuse("its pads must be two numbers for each axis, none below 0");
  const around = sizes.map((_, place) => (widths[place] as number) + (widths[place + sizes.length] as number));
  return [{ element, shape: sizes.map((size, place) => node.sumOf([size], around[place])) }];
};

const expand: Rule = (node) => {
  const wanted = node.sizes(1);
  if (wanted.some(([number]) => number < 1)) node.refuse("it expands to less than 1");
  return [{ element: node.given(0).element, shape: node.joined(node.given(0).shape, wanted) }];
};

/** Every integer below a size. */
const range: Rule = (node) => {
  const [start, limit, delta] = [0, 1, 2].map((place) => {
    const { content } = node.given(place);
    return content?.length === 1 ? content[0] : undefined;
  });
  if (!start || !limit || !delta) return node.refuse("its bounds depend on what is fed");
  if (!equal(start, fixed(0)) || !equal(delta, ONE) || limit[0] < 0)
    node.refuse("it must count from 0 by 1");
  return [{ element: node.given(0).element, shape: [limit] }];
};

const gather: Rule = (node) => {
  const [{ element, shape: sizes }, axis] = [node.given(0), node.axis()];
  return [{ element, shape: [...sizes.slice(0, axis), ...node.given(1).shape, ...sizes.slice(axis + 1)] }];
};

const gatherNd: Rule = (node) => {
  const [{ element, shape: sizes }, rows] = [node.given(0), node.given(1).shape];
  const depth = rows[rows.length - 1] ?? fixed(0);
  if (isFree(depth) || depth[0] < 1 || depth[0] > sizes.length) node.refuse("its rows don't go with what they are of");
  return [{ element, shape: [...rows.slice(0, -1), ...sizes.slice(depth[0])] }];
};

const gatherElements: Rule = (node) => [{ element: node.given(0).element, shape: node.given(1).shape }];

/** Which clicks are real: the only size that depends on inputs, and only on the mask. */
const nonzero: Rule = (node) => {
  const { shape: sizes, ofMask, some } = node.given(0);
  const [row] = sizes;
  if (!row || sizes.length !== 1 || !ofMask || !some)
    return node.refuse("it may ask only the mask of clicks, in one row that begins with 1, how large its result is");
  const name = `${REAL}${node.made.size}`;
  node.made.set(name, new Map([[row[1].join("*"), row]]));
  return [{ element: INT64, shape: [ONE, [1, [name]]] }];
};

/** Matrix products; further axes are broadcast, and a vector counts as a row or a column. */
const matmul: Rule = (node) => {
  const [first, second] = [node.given(0).shape, node.given(1).shape];
  const [left, right] = [first.length > 1 ? first : [ONE, ...first], second.length > 1 ? second : [...second, ONE]];
  const [rows, inner] = left.slice(-2) as [Size, Size];
  const [also, columns] = right.slice(-2) as [Size, Size];
  if (!first.length || !second.length || !equal(inner, also)) node.refuse("it multiplies matrices that don't go together");
  const beside = node.joined(left.slice(0, -2), right.slice(0, -2));
  node.multiplyAdds = times([...beside, rows, inner, columns]);
  const shown = [...beside, ...(first.length > 1 ? [rows] : []), ...(second.length > 1 ? [columns] : [])];
  return [{ element: node.given(0).element, shape: shown }];
};

const gemm: Rule = (node) => {
  const turned = (place: number, name: string) => {
    const sizes = node.given(place).shape;
    return node.number(name, 0) ? [...sizes].reverse() : sizes;
  };
  const [left, right] = [turned(0, "transA"), turned(1, "transB")];
  if (left.length !== 2 || right.length !== 2 || !equal(left[1], right[0]))
    node.refuse("it multiplies matrices that don't go together");
  const made = [left[0] as Size, right[1] as Size];
  node.multiplyAdds = times([...made, left[1] as Size]);
  return [{ element: node.given(0).element, shape: made }];
};

function along(node: GraphNode, places: ReadonlySet<number>, element: number): KnownTensor[] {
  const { shape: sizes } = node.given(0);
  const kept = node.number("keepdims", 1) ? sizes : sizes.filter((_, place) => !places.has(place));
  return [{ element, shape: kept === sizes ? sizes.map((size, place) => (places.has(place) ? ONE : size)) : kept }];
}

const reduce: Rule = (node) => {
  const { element, shape: sizes } = node.given(0);
  const named = node.inputs.length > 1 ? node.numbers(1).map((each) => node.place(each)) : [];
  return along(node, new Set(named.length ? named : sizes.keys()), element);
};
const argmax: Rule = (node) => along(node, new Set([node.axis()]), INT64);
const softmax: Rule = (node) => {
  node.axis(-1);
  return same(node);
};
const cumsum: Rule = (node) => {
  node.numbers(1);
  return same(node);
};

const layerNorm: Rule = (node) => {
  const { element, shape: sizes } = node.given(0);
  if (node.axis(-1) !== sizes.length - 1) node.refuse("it normalises over more than the last axis");
  const short = { element, shape: put(sizes, sizes.length - 1, ONE) };
  return [{ element, shape: sizes }, short, short].slice(0, node.outputs);
};

/** A GRU, time first; the number of steps of a row may depend only on the mask. */
const gru: Rule = (node) => {
  const [{ element, shape: sizes }, width] = [node.given(0), node.number("hidden_size", 0)];
  const [steps, batch, features] = sizes;
  if (!steps || !batch || !features || sizes.length !== 3 || width <= 0 || width > LIMITS.axis)
    return node.refuse("it reads something else than steps of rows, or has no width");
  if (!node.given(4).ofMask) node.refuse("how many steps it takes depends on more than the mask of clicks");
  const cells = times([steps, batch, fixed(3 * width)]);
  node.multiplyAdds = times([cells, [features[0] + width, features[1]]]);
  node.scratchBytes = times([cells, fixed(16)]);
  const states = [[steps, ONE, batch, fixed(width)], [ONE, batch, fixed(width)]];
  return states.slice(0, node.outputs).map((each) => ({ element, shape: each }));
};

/**
 * floats: its first input must be floats; attributes: name -> type; cost: multiply-adds per input or output element.
 */
interface Operator {
  readonly rule: Rule;
  readonly floats: boolean;
  readonly attributes: Readonly<Record<string, number>>;
  readonly cost: number;
}
const RULES: Readonly<Record<string, Rule>> = {
  ...{ same, elementwise, comparison, where, cast, shape, reshape, squeeze, unsqueeze, transpose, concat, split, slice, pad },
  ...{ expand, range, gather, gather_nd: gatherNd, gather_elements: gatherElements, nonzero, matmul, gemm, reduce, argmax },
  ...{ softmax, cumsum, layer_norm: layerNorm, gru },
};
const OPERATORS: ReadonlyMap<string, Operator> = new Map(
  Object.entries(TABLE.operators).flatMap(([rule, forms]) =>
    forms.flatMap(({ names, floats = false, attributes = {}, cost = CHEAP }) =>
      names.split(" ").map((name): [string, Operator] => [name, { rule: RULES[rule] as Rule, floats, attributes, cost }]),
    ),
  ),
);

/** Sizes, each with its multiplicity. */
class Weighted {
  private readonly all = new Map<string, [Size, number]>();

  add(size: Size, weight: number): void {
    const key = [size[0], ...size[1]].join("*");
    this.all.set(key, [size, (this.all.get(key)?.[1] ?? 0) + weight]);
  }

  of(axes: ReadonlyMap<string, number>): number {
    return total([...this.all.values()].map(([size, weight]) => bound(size, axes) * weight));
  }
}

/**
 * Upper bounds for a run of a checked graph. axes: (input, place, axis) of each free axis; each name must have one
 * size. made: axes created by the graph.
 */
export class GraphCosts {
  constructor(
    private readonly axes: readonly (readonly [input: string, place: number, axis: string])[],
    private readonly made: ReadonlyMap<string, Terms>,
    private readonly memoryBytes: Weighted,
    private readonly multiplyAdds: Weighted,
  ) {}

  /** Bytes and multiply-adds of a run with these axis sizes. */
  of(sizes: ReadonlyMap<string, number>): [number, number] {
    const axes = new Map(sizes);
    for (const [name, terms] of this.made) axes.set(name, Math.max(0, total([...terms.values()].map((each) => bound(each, axes)))));
    return [this.memoryBytes.of(axes), this.multiplyAdds.of(axes)];
  }

  /** Throws GraphRefused unless a run on inputs of these shapes is consistent and within the limits. */
  require(shapes: Readonly<Record<string, readonly number[]>>): void {
    const sizes = new Map<string, number>();
    for (const [name, place, axis] of this.axes) {
      const size = shapes[name]?.[place] ?? 0;
      const known = sizes.get(axis) ?? size;
      if (known !== size) throw new GraphRefused(`input ${name}: axis ${axis} has size ${size}, elsewhere ${known}`);
      if (size < 1 || size > LIMITS.axis)
        throw new GraphRefused(`axis ${axis} has size ${size}; must be 1 to ${LIMITS.axis}`);
      sizes.set(axis, size);
    }
    this.requireSizes(sizes);
  }

  /** Throws GraphRefused unless a run with the daily axis sizes is within the limits. */
  requireDaily(): void {
    const used = new Set(this.axes.map(([, , axis]) => axis));
    this.requireSizes(new Map(Object.entries(AXES_OF_A_RUN).filter(([axis]) => used.has(axis))));
  }

  private requireSizes(sizes: ReadonlyMap<string, number>): void {
    const shown = [...sizes].map(([axis, size]) => `${axis} ${size}`).join(", ") || "no free axes";
    const [memory, work] = this.of(sizes);
    // NaN counts as exceeding the limit
    if (!(memory <= LIMITS.run_bytes)) throw new GraphRefused(`a run with ${shown} needs more than ${LIMITS.run_bytes} bytes`);
    if (!(work <= LIMITS.run_multiply_adds))
      throw new GraphRefused(`a run with ${shown} needs more than ${LIMITS.run_multiply_adds} multiply-adds`);
  }
}

/** Checks a graph and returns the cost of a run. Throws GraphRefused, naming node, operator and limit. */
export function checkGraph(content: Uint8Array): GraphCosts {
  if (content.length > LIMITS.file_bytes)
    throw new GraphRefused(`it has ${content.length} bytes, the limit is ${LIMITS.file_bytes}`);
  const model = new WireReader(content).message(content.length, MODEL, "model");
  const version = model["ir_version"] ?? 0;
  if (version < LIMITS.oldest_ir || version > LIMITS.newest_ir)
    throw new GraphRefused(`its ir_version is not one of ${LIMITS.oldest_ir} to ${LIMITS.newest_ir}`);
  const sets = model["operator_sets"] as Parsed[];
  if (sets.length !== 1 || (sets[0]?.["domain"] ?? "") !== "" || sets[0]?.["version"] !== LIMITS.opset)
    throw new GraphRefused(`its operator sets must be exactly ONNX's own, version ${LIMITS.opset}`);
  if (!model["graph"]) throw new GraphRefused("it has no graph");
  return new Course(model["graph"]).costs();
}

/** Walks once through a graph, node by node. */
class Course {
  private readonly values = new Map<string, KnownTensor>();
  private readonly made = new Map<string, Terms>();
  private readonly memory = new Weighted();
  private readonly work = new Weighted();

  constructor(private readonly graph: Parsed) {}

  costs(): GraphCosts {
    const { nodes, inputs, initializers, outputs } = this.graph as Record<string, Parsed[]>;
    if (!nodes || nodes.length > LIMITS.nodes)
      throw new GraphRefused(`it has ${nodes?.length} nodes, the limit is ${LIMITS.nodes}`);
    const free: [string, number, string][] = [];
    for (const each of inputs ?? []) {
      const { name, element, shape: sizes } = declared(each, "input");
      const axes = [...sizes.entries()].flatMap(([place, size]) => size[1].map((axis) => [name, place, axis] as [string, number, string]));
      if (axes[0] && name.startsWith("p."))
        throw new GraphRefused(`input ${name} is a parameter but has the free axis ${axes[0][2]}`);
      free.push(...axes);
      this.define(name, { element, shape: sizes, ofMask: TABLE.masks.includes(name) });
    }
    for (const each of initializers ?? []) this.define(each["name"] ?? "", initializer(each));
    for (const [place, each] of nodes.entries()) {
      try {
        this.step(each);
      } catch (refused) {
        if (!(refused instanceof GraphRefused)) throw refused;
        throw new GraphRefused(`node ${place} (${each["operator"] ?? ""}): ${refused.message}`);
      }
    }
    for (const each of outputs ?? []) {
      const { name, element, shape: sizes } = declared(each, "output");
      const value = this.values.get(name);
      const isSo = value?.element === element && value.shape.length === sizes.length && sizes.every((size, at) => equal(size, value.shape[at]));
      if (!isSo) throw new GraphRefused(`output ${name} is declared with another shape or type than it has`);
    }
    const costs = new GraphCosts(free, this.made, this.memory, this.work);
    costs.requireDaily();
    return costs;
  }

  private define(name: string, value: KnownTensor): void {
    if (!name || this.values.has(name)) throw new GraphRefused(`the name '${name}' is empty or already used`);
    if (value.shape.length > LIMITS.rank)
      throw new GraphRefused(`${name} has ${value.shape.length} axes, the limit is ${LIMITS.rank}`);
    this.values.set(name, value);
    this.memory.add(times(value.shape), WIDTHS_BYTES.get(value.element) ?? 0);
  }

  private step(given: Parsed): void {
    const operator = OPERATORS.get(given["operator"] ?? "");
    if (!operator || given["domain"]) throw new GraphRefused("an operator that a release's graph may not contain");
    const [names, outputs] = [given["inputs"] as string[], given["outputs"] as string[]];
    const missing = names.find((name) => name && !this.values.has(name));
    if (missing !== undefined) throw new GraphRefused(`its input ${missing} is not computed by any node before it`);
    const inputs = names.map((name) => this.values.get(name) ?? null);
    const node = new GraphNode(inputs, outputs.length, attributesOf(given["attributes"], operator), this.made);
    if (operator.floats && ![FLOAT, DOUBLE].includes(node.given(0).element))
      node.refuse("it works on whole numbers, which no graph of a release does");
    const results = operator.rule(node);
    if (results.length !== node.outputs) node.refuse(`it has ${node.outputs} outputs`);
    const ofMask = given["operator"] === "Shape" || inputs.every((each) => !each || each.ofMask === true);
    for (const [place, value] of results.entries()) if (outputs[place]) this.define(outputs[place], { ...value, ofMask });
    for (const each of [...inputs, ...results]) if (each) this.work.add(times(each.shape), operator.cost);
    this.memory.add(node.scratchBytes, 1);
    this.work.add(node.multiplyAdds, 1);
  }
}

function attributesOf(given: readonly Parsed[], operator: Operator): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const parts: Readonly<Record<number, string>> = { 1: "f", 2: "i", 3: "s", 7: "ints" }; // by ONNX's numbers of types
  for (const each of given) {
    const [name, kind] = [(each["name"] ?? "") as string, each["type"] as number];
    const wanted = Object.hasOwn(operator.attributes, name) ? operator.attributes[name] : undefined;
    if (wanted === undefined || wanted !== kind || found.has(name)) throw new GraphRefused(`its attribute ${name} is not allowed`);
    const held = parts[kind] as string;
    const others = Object.values(parts).filter((part) => part !== held && each[part] !== undefined);
    if (others.some((part) => part !== "ints" || each[part].length))
      throw new GraphRefused(`its attribute ${name} has values of other types`);
    found.set(name, each[held] ?? (held === "s" ? "" : 0));
    if (TABLE.flags.includes(name) && found.get(name) !== 0 && found.get(name) !== 1)
      throw new GraphRefused(`its attribute ${name} is neither 0 nor 1`);
  }
  return found;
}

function declared(given: Parsed, what: string): { name: string; element: number; shape: Shape } {
  const [name, tensor] = [(given["name"] ?? "") as string, (given["type"]?.tensor ?? {}) as Parsed];
  if (!WIDTHS_BYTES.has(tensor["element"]) || !tensor["shape"])
    throw new GraphRefused(`${what} ${name}: it has no shape, or an unsupported element type`);
  const sizes = (tensor["shape"].axes as Parsed[]).map(({ size, name: free }): Size => {
    if ((size === undefined) === (free === undefined))
      throw new GraphRefused(`${what} ${name}: an axis has neither a size nor a name, or both`);
    if (free !== undefined && !Object.hasOwn(AXES_OF_A_RUN, free))
      throw new GraphRefused(`${what} ${name}: its axis ${free} is not one of ${Object.keys(AXES_OF_A_RUN).join(", ")}`);
    if (size !== undefined && (size <= 0 || size > LIMITS.axis))
      throw new GraphRefused(`${what} ${name}: an axis is not within 1 to ${LIMITS.axis}`);
    return free === undefined ? fixed(size) : [1, [free]];
  });
  return { name, element: tensor["element"], shape: sizes };
}

function initializer(given: Parsed): KnownTensor {
  const [element, dims, raw] = [given["element"] as number, given["dims"] as number[], (given["raw"] ?? new Uint8Array()) as Uint8Array];
  const width = WIDTHS_BYTES.get(element);
  if (!width || dims.length > LIMITS.rank || dims.some((size) => size < 0))
    throw new GraphRefused(`initializer ${given["name"] ?? ""}: an unsupported type or shape`);
  const count = dims.reduce((all, size) => all * size, 1);
  if (count * width !== raw.length)
    throw new GraphRefused(`initializer ${given["name"] ?? ""}: ${raw.length} bytes, its shape needs ${count * width}`);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const some = element === INT64 && raw.some((byte) => byte !== 0);
  // integers that are sizes; float32 ones start and step a Range
  const ofRange = element === FLOAT && count === 1 && [0, 1].includes(view.getFloat32(0, true)) && raw[3] !== 0x80;
  const known = dims.length < 2 && count <= LIMITS.content && (element === INT64 || ofRange);
  const read = (at: number) => (element === INT64 ? Number(view.getBigInt64(8 * at, true)) : view.getFloat32(4 * at, true));
  const content = known ? Array.from({ length: count }, (_, at) => fixed(read(at))) : null;
  return { element, shape: dims.map(fixed), content, ofMask: true, some };
}
