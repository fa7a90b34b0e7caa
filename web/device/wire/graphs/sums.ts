// Rules of operators that multiply and add up along axes, and what they cost besides their results.
import { type Size, listed, plus, product, times } from "./sizes";
import { type GraphNode, INT32, INT64, type KnownTensor, type Shape, countOf, joined } from "./values";

/** Products of matrices; further axes are broadcast, and a list counts as a row or a column. */
export function matmul(node: GraphNode): KnownTensor[] {
  const [first, second] = alike(node);
  const left: Shape = first.shape.length > 1 ? first.shape : [1n, ...first.shape];
  const right: Shape = second.shape.length > 1 ? second.shape : [...second.shape, 1n];
  const inner = left[left.length - 1] as Size;
  if (!first.shape.length || !second.shape.length || String(inner) !== String(right[right.length - 2]))
    node.refuse(`it multiplies ${listed(first.shape)} with ${listed(second.shape)}`);
  const beside = joined(node, left.slice(0, -2), right.slice(0, -2));
  const made = product([...beside, left[left.length - 2] as Size, inner, right[right.length - 1] as Size]);
  node.multiplyAdds = plus(node.multiplyAdds, made);
  const rows = first.shape.length > 1 ? left.slice(-2, -1) : [];
  const columns = second.shape.length > 1 ? right.slice(-1) : [];
  return [{ element: first.element, shape: [...beside, ...rows, ...columns] }];
}

function alike(node: GraphNode): [KnownTensor, KnownTensor] {
  const [first, second] = [node.given(0), node.given(1)];
  if (first.element !== second.element) node.refuse("its inputs are of different types");
  return [first, second];
}

/** One product of two matrices, either transposed, and something added. */
export function gemm(node: GraphNode): KnownTensor[] {
  const [first, second] = alike(node);
  if (first.shape.length !== 2 || second.shape.length !== 2)
    node.refuse(`it multiplies ${listed(first.shape)} with ${listed(second.shape)}`);
  const turned = (shape: Shape, flag: string): Shape => (node.number(flag, 0) ? [...shape].reverse() : shape);
  const [rows, inner] = turned(first.shape, "transA") as [Size, Size];
  const [also, columns] = turned(second.shape, "transB") as [Size, Size];
  if (String(inner) !== String(also)) node.refuse(`it multiplies ${listed([rows, inner])} with ${listed([also, columns])}`);
  const added = node.maybe(2);
  if (added) {
    node.same(joined(node, added.shape, [rows, columns]), [rows, columns], "what it adds, broadcast, and the product");
    if (added.element !== first.element) node.refuse("its inputs are of different types");
  }
  node.multiplyAdds = plus(node.multiplyAdds, product([rows, inner, columns]));
  return [{ element: first.element, shape: [rows, columns] }];
}

/** Along one axis. */
export function softmax(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const last = value.shape.length - 1;
  if (node.axis(node.number("axis", -1), value.shape.length) < last) scratch(node, value, 16n); // moved to the end and back
  return [{ element: value.element, shape: value.shape }];
}

/** Sums, means, extremes and lengths along axes; along all, where none is named. */
export function reduced(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const named = node.maybe(1) ? node.numbers(1) : [];
  const axes = new Set(named.map((each) => node.axis(each, value.shape.length)));
  scratch(node, value, 8n);
  return [{ element: value.element, shape: without(node, value, axes.size ? axes : new Set(value.shape.keys())) }];
}

/** Where the greatest is along an axis. */
export function argmax(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const axis = node.axis(node.number("axis", 0), value.shape.length);
  scratch(node, value, 8n);
  return [{ element: INT64, shape: without(node, value, new Set([axis])) }];
}

function without(node: GraphNode, value: KnownTensor, axes: ReadonlySet<number>): Shape {
  if (node.number("keepdims", 1)) return value.shape.map((size, place) => (axes.has(place) ? 1n : size));
  return value.shape.filter((_, place) => !axes.has(place));
}

function scratch(node: GraphNode, value: KnownTensor, bytes: bigint): void {
  node.scratchBytes = plus(node.scratchBytes, times(countOf(value), bytes));
}

/** Sums up to each place. */
export function cumulated(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const [axis, ...more] = node.numbers(1);
  if (axis === undefined || more.length) node.refuse(`it adds up along axes ${listed(node.numbers(1))}`);
  node.axis(axis, value.shape.length);
  return [{ element: value.element, shape: value.shape }];
}

/** Over the last axis: the result, the mean and 1 / deviation. */
export function layerNorm(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  const rank = value.shape.length;
  if (node.axis(node.number("axis", -1), rank) !== rank - 1) node.refuse("it normalises over more than the last axis");
  for (let place = 1; place < node.inputs.length; place++) {
    node.same(node.given(place).shape, value.shape.slice(-1), "the last axis and its scales");
    if (node.given(place).element !== value.element) node.refuse("its inputs are of different types");
  }
  const short = { element: value.element, shape: [...value.shape.slice(0, -1), 1n] };
  return [value, short, short].slice(0, node.outputs);
}

/** A GRU, time first; how many steps a row has may follow from the mask alone. */
export function gru(node: GraphNode): KnownTensor[] {
  const [value, input, recurrent, bias, lengths] = [0, 1, 2, 3, 4].map((place) => node.given(place)) as [
    KnownTensor,
    KnownTensor,
    KnownTensor,
    KnownTensor,
    KnownTensor,
  ];
  const width = node.number("hidden_size", 0);
  if (value.shape.length !== 3) node.refuse(`it reads ${listed(value.shape)}`);
  const [steps, batch, features] = value.shape as [Size, Size, Size];
  const taken: [KnownTensor | null, Shape][] = [
    [input, [1n, 3n * width, features]],
    [recurrent, [1n, 3n * width, width]],
    [bias, [1n, 6n * width]],
    [lengths, [batch]],
    [node.maybe(5), [1n, batch, width]],
  ];
  for (const [given, shape] of taken) {
    if (!given) continue;
    node.same(given.shape, shape, "what it is given and what it takes");
    if (given.element !== (given === lengths ? INT32 : value.element)) node.refuse("its inputs are of the wrong types");
  }
  if (!lengths.ofMask) node.refuse("how many steps it takes depends on more than the mask of clicks");
  const cells = product([steps, batch, 3n * width]);
  node.multiplyAdds = plus(node.multiplyAdds, times(cells, plus(features, width)));
  node.scratchBytes = plus(node.scratchBytes, times(cells, 16n));
  const states = [
    { element: value.element, shape: [steps, 1n, batch, width] },
    { element: value.element, shape: [1n, batch, width] },
  ];
  return states.slice(0, node.outputs);
}
