// Rules of operators that move numbers: what shape, and what content, their results have.
import { NUMBER_LIMIT, type Size, equal, isFixed, listed, minus, plus, product, quotient, times } from "./sizes";
import {
  type GraphNode,
  CONTENT_LIMIT,
  DOUBLE,
  FLOAT,
  INT64,
  type KnownTensor,
  RANK_LIMIT,
  type Shape,
  countOf,
  joined,
  shownType,
  within,
} from "./values";

/** An end of a slice from here on means the end of the axis. */
const FAR = 2n ** 31n - 1n;
/** Whole numbers up to here are float32 as they are. */
export const EXACT_FLOAT = 2n ** 24n;

/** The content of a sum, difference or product of sizes. */
export function arithmetic(node: GraphNode, first: KnownTensor, second: KnownTensor): Shape | null {
  if (!first.content || !second.content) return null;
  const [ones, others] = [first.content, second.content];
  const length = Math.max(ones.length, others.length);
  if (length > RANK_LIMIT || [ones, others].some((each) => each.length !== 1 && each.length !== length)) return null;
  return Array.from({ length }, (_, at) => {
    const [one, other] = [ones[at % ones.length] as Size, others[at % others.length] as Size];
    const size = node.operator === "Add" ? plus(one, other) : node.operator === "Sub" ? minus(one, other) : times(one, other);
    if (isFixed(size) && (size > NUMBER_LIMIT || -size > NUMBER_LIMIT)) node.refuse("a size is beyond 2^62");
    return size;
  });
}

/** The same value. */
export function identity(node: GraphNode): KnownTensor[] {
  return [node.given(0)];
}

/** The same numbers in another type; whole numbers stay known in float32 while it holds them exactly. */
export function cast(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const given = node.attributes.get("to");
  const to = Number(given);
  if (given === undefined || !shownType(to)) node.refuse(`it makes numbers of type ${given ?? "None"}`);
  const exact = (size: Size): boolean => {
    const [least, most] = node.bounds(size);
    return most <= EXACT_FLOAT && least >= 0n;
  };
  const kept =
    to === value.element ||
    ([INT64, FLOAT].includes(value.element) && [INT64, FLOAT, DOUBLE].includes(to) && value.content?.every(exact));
  return [{ ...value, element: to, content: kept ? value.content : null, some: false }];
}

/** The shape of what is given, or a part of it. */
export function shape(node: GraphNode): KnownTensor[] {
  const axes = node.given(0).shape;
  const sizes = axes.slice(Number(node.number("start", 0)), Number(node.number("end", axes.length)));
  return [{ element: INT64, shape: [BigInt(sizes.length)], content: sizes, ofMask: true }];
}

/** 0 keeps the axis of the source, one -1 is what is left. */
export function reshape(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const wanted = node.sizes(1);
  const sizes: Size[] = [];
  let openAt = -1;
  for (const [place, size] of wanted.entries()) {
    if (size === -1n) {
      if (openAt >= 0) node.refuse("its shape has -1 twice");
      openAt = place;
      sizes.push(1n);
    } else if (size === 0n) {
      sizes.push(value.shape[place] ?? node.refuse(`its shape keeps axis ${place} of ${value.shape.length}`));
    } else sizes.push(within(node, size, 1n));
  }
  if (openAt >= 0)
    sizes[openAt] =
      quotient(countOf(value), product(sizes)) ??
      node.refuse(`shape ${listed(value.shape)} can't become ${listed(wanted)} whatever is fed`);
  if (!equal(product(sizes), countOf(value)))
    node.refuse(`shape ${listed(value.shape)} can't become ${listed(wanted)}`);
  return [{ element: value.element, shape: sizes, content: sizes.length < 2 ? value.content : null, some: value.some }];
}

/** Without axes of size 1. */
export function squeeze(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const rank = value.shape.length;
  let axes: Set<number>;
  if (node.inputs.length > 1) axes = new Set(node.numbers(1).map((each) => node.axis(each, rank)));
  else {
    if (!value.shape.every(isFixed)) node.refuse("which axes it takes away depends on what is fed");
    axes = new Set([...value.shape.keys()].filter((place) => value.shape[place] === 1n));
  }
  if ([...axes].some((place) => value.shape[place] !== 1n))
    node.refuse(`it takes away axes ${listed([...axes].sort((one, other) => one - other))} of ${listed(value.shape)}`);
  const kept = value.shape.filter((_, place) => !axes.has(place));
  return [{ ...value, shape: kept, content: kept.length < 2 ? value.content : null }];
}

/** With axes of size 1 put in. */
export function unsqueeze(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const given = node.numbers(1);
  const rank = value.shape.length + given.length;
  const places = new Set(given.map((each) => node.axis(each, rank)));
  if (places.size !== given.length) node.refuse("it names an axis twice");
  const rest = value.shape.values();
  const sizes = Array.from({ length: rank }, (_, place) => (places.has(place) ? 1n : (rest.next().value as Size)));
  return [{ ...value, shape: sizes, content: rank < 2 ? value.content : null }];
}

/** Axes in another order. */
export function transpose(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const order = (node.attributes.get("perm") ?? []) as readonly bigint[];
  const sorted = [...order].sort((one, other) => (one < other ? -1 : 1));
  if (listed(sorted) !== listed(value.shape.keys())) node.refuse(`it orders ${value.shape.length} axes by ${listed(order)}`);
  return [{ element: value.element, shape: order.map((place) => value.shape[Number(place)] as Size) }];
}

/** One behind the other. */
export function concat(node: GraphNode): KnownTensor[] {
  const parts = node.inputs.map((_, place) => node.given(place));
  const first = node.given(0);
  const rank = first.shape.length;
  const axis = node.axis(node.number("axis", rank), rank);
  for (const each of parts) {
    if (each.element !== first.element || each.shape.length !== rank)
      node.refuse("its inputs are of different types or ranks");
    node.same(beside(each.shape, axis), beside(first.shape, axis), "beside the axis its inputs");
  }
  const sizes = [...first.shape];
  sizes[axis] = parts.map((each) => each.shape[axis] as Size).reduce(plus, 0n);
  const contents = parts.flatMap(({ content }) => (content ? [content] : []));
  const all = contents.flat();
  const content = rank === 1 && contents.length === parts.length && all.length <= CONTENT_LIMIT ? all : null;
  return [{ element: first.element, shape: sizes, content, some: parts.some(({ some }) => some) }];
}

/** Pieces of given sizes. */
export function split(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const lengths = node.numbers(1);
  const axis = node.axis(node.number("axis", 0), value.shape.length);
  const whole = lengths.reduce((all, each) => all + each, 0n);
  if (lengths.length !== node.outputs || lengths.some((each) => each < 1n) || value.shape[axis] !== whole)
    node.refuse(`it splits an axis of ${value.shape[axis]} into ${node.outputs} of ${listed(lengths)}`);
  return lengths.map((each) => ({
    element: value.element,
    shape: value.shape.map((size, place) => (place === axis ? each : size)),
  }));
}

/** Parts of axes: any part of a fixed one, the rest from a place on of a free one. */
export function slices(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const [starts, ends] = [node.numbers(1), node.sizes(2)];
  const rank = value.shape.length;
  const axes = node.maybe(3) ? node.numbers(3) : starts.map((_, at) => BigInt(at));
  const steps = node.maybe(4) ? node.numbers(4) : starts.map(() => 1n);
  if ([ends, axes, steps].some((each) => each.length !== starts.length))
    node.refuse("its starts, ends, axes and steps are not equally many");
  const places = axes.map((each) => node.axis(each, rank));
  if (new Set(places).size !== places.length) node.refuse("it names an axis twice");
  const sizes = [...value.shape];
  let content = rank === 1 ? value.content : null;
  for (const [at, place] of places.entries()) {
    const [start, end, step] = [starts[at] as bigint, ends[at] as Size, steps[at] as bigint];
    const size = sizes[place] as Size;
    if (isFixed(size) && isFixed(end) && step) {
      const [first, last] = ofRange(start, end > -FAR || step > 0n ? end : null, step, size);
      sizes[place] = stepsOf(first, last, step);
      content = content && Array.from({ length: Number(sizes[place]) }, (_, nth) => taken(content as Shape, first, step, nth));
      continue;
    }
    content = null;
    const whole = equal(end, size) || (isFixed(end) && end >= FAR);
    if (step === 1n && start >= 0n && whole) sizes[place] = within(node, minus(size, start), 0n);
    else if (!(step === -1n && start === -1n && isFixed(end) && end <= -FAR))
      node.refuse(`it takes ${start}:${end}:${step} of an axis of ${size}, whose length depends on what is fed`);
  }
  return [{ element: value.element, shape: sizes, content }];
}

function taken(content: Shape, first: bigint, step: bigint, nth: number): Size {
  return content[Number(first + step * BigInt(nth))] as Size;
}

/** Where a slice of an axis of this size begins and ends; an end of null is beyond all of it. */
function ofRange(start: bigint, end: bigint | null, step: bigint, size: bigint): [bigint, bigint] {
  const [low, high] = step > 0n ? [0n, size] : [-1n, size - 1n];
  const held = (place: bigint): bigint => {
    const found = place < 0n ? place + size : place;
    return found < low ? low : found > high ? high : found;
  };
  return [held(start), end === null ? low : held(end)];
}

/** Numbers before and after. */
export function pad(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const widths = node.numbers(1);
  const filling = node.maybe(2);
  const rank = value.shape.length;
  if (widths.length !== 2 * rank || widths.some((each) => each < 0n))
    node.refuse(`it pads ${rank} axes by ${listed(widths)}`);
  if (filling && (filling.element !== value.element || countOf(filling) !== 1n))
    node.refuse("it pads with something else than one number of the same type");
  const wide = value.shape.map((size, at) => plus(size, (widths[at] as bigint) + (widths[at + rank] as bigint)));
  return [{ element: value.element, shape: wide }];
}

/** Broadcast to a shape. */
export function expand(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const wanted = node.sizes(1).map((each) => within(node, each, 1n));
  return [{ element: value.element, shape: joined(node, value.shape, wanted) }];
}

/** start, start + delta...: constant, or every whole number below a size. */
export function span(node: GraphNode): KnownTensor[] {
  const given = [0, 1, 2].map((place) => node.given(place));
  const [start, limit, delta] = given.map(({ content }) => (content?.length === 1 ? content[0] : undefined));
  const element = node.given(0).element;
  if (start === undefined || limit === undefined || delta === undefined || given.some((each) => each.element !== element))
    node.refuse("its bounds depend on what is fed");
  const fixed = isFixed(start) && isFixed(delta) && delta !== 0n;
  if (isFixed(limit) ? !fixed : start !== 0n || delta !== 1n) node.refuse(`it counts to ${limit} from ${start} by ${delta}`);
  const length = isFixed(limit) && isFixed(start) && isFixed(delta) ? stepsOf(start, limit, delta) : limit;
  const [least, most] = node.bounds(length);
  if (least < 0n || most > EXACT_FLOAT) node.refuse(`it counts up to ${most}, the limit is ${EXACT_FLOAT}`);
  return [{ element, shape: [length] }];
}

/** How many whole numbers lie from start to before end by steps. */
function stepsOf(start: bigint, end: bigint, step: bigint): bigint {
  const [way, stride] = step > 0n ? [end - start, step] : [start - end, -step];
  return way > 0n ? (way + stride - 1n) / stride : 0n;
}

/** A shape without one of its axes. */
export function beside(sizes: Shape, axis: number): Shape {
  return sizes.filter((_, place) => place !== axis);
}
