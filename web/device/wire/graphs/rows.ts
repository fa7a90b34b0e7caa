// Rules of operators that take or replace parts by number, and of the one whose result is as long as what is fed says.
import { beside } from "./layout";
import { Polynomial, type Size, isFixed, listed } from "./sizes";
import { type GraphNode, INT32, INT64, type KnownTensor, type Shape, countOf, shownType } from "./values";

/** Rows by number. */
export function gather(node: GraphNode): KnownTensor[] {
  const [value, rows] = [node.given(0), rowsOf(node)];
  const axis = node.axis(node.number("axis", 0), value.shape.length);
  let content: Shape | null = null;
  if (value.content && rows.content && rows.shape.length < 2) {
    const known = value.content;
    const length = BigInt(known.length);
    const places = rows.content.filter(isFixed).filter((row) => -length <= row && row < length);
    if (places.length < rows.content.length) node.refuse(`it takes places ${listed(rows.content)} of ${length}`);
    content = places.map((row) => known[Number(row < 0n ? row + length : row)] as Size);
  }
  const shape = [...value.shape.slice(0, axis), ...rows.shape, ...value.shape.slice(axis + 1)];
  return [{ element: value.element, shape, content }];
}

function rowsOf(node: GraphNode): KnownTensor {
  const rows = node.given(1);
  if (rows.element !== INT32 && rows.element !== INT64) node.refuse(`its rows are ${shownType(rows.element)}`);
  return rows;
}

/** Parts by several numbers each. */
export function gatherNd(node: GraphNode): KnownTensor[] {
  const [value, rows] = [node.given(0), rowsOf(node)];
  return [{ element: value.element, shape: partsShape(node, value, rows) }];
}

/** The shape of what rows of several numbers each take. */
function partsShape(node: GraphNode, value: KnownTensor, rows: KnownTensor): Shape {
  const depth = rows.shape.length ? (rows.shape[rows.shape.length - 1] as Size) : 0n;
  if (rows.element !== INT64 || !isFixed(depth) || depth < 1n || depth > value.shape.length)
    node.refuse(`its rows have shape ${listed(rows.shape)}, what they are of has ${listed(value.shape)}`);
  return [...rows.shape.slice(0, -1), ...value.shape.slice(Number(depth))];
}

/** Along an axis, a number for each place. */
export function gatherElements(node: GraphNode): KnownTensor[] {
  const [value, rows] = [node.given(0), rowsOf(node)];
  requireBeside(node, value, rows);
  return [{ element: value.element, shape: rows.shape }];
}

function requireBeside(node: GraphNode, value: KnownTensor, rows: KnownTensor): void {
  const axis = node.axis(node.number("axis", 0), value.shape.length);
  if (value.shape.length !== rows.shape.length)
    node.refuse(`its rows have ${rows.shape.length} axes, what they are of has ${value.shape.length}`);
  node.same(beside(value.shape, axis), beside(rows.shape, axis), "beside the axis, rows and what they are of");
}

/** Parts replaced, or added to. */
export function scatterNd(node: GraphNode): KnownTensor[] {
  const [value, rows, updates] = [node.given(0), rowsOf(node), node.given(2)];
  node.same(updates.shape, partsShape(node, value, rows), "updates and their places");
  return scattered(node, value, updates);
}

/** Along an axis, numbers replaced, or added to. */
export function scatterElements(node: GraphNode): KnownTensor[] {
  const [value, rows, updates] = [node.given(0), rowsOf(node), node.given(2)];
  requireBeside(node, value, rows);
  node.same(rows.shape, updates.shape, "updates and their places");
  return scattered(node, value, updates);
}

function scattered(node: GraphNode, value: KnownTensor, updates: KnownTensor): KnownTensor[] {
  if (updates.element !== value.element) node.refuse("its updates are of another type");
  const reduction = node.attributes.get("reduction") ?? "none";
  if (reduction !== "none" && reduction !== "add") node.refuse(`its reduction is ${reduction}`);
  return [{ element: value.element, shape: value.shape }];
}

/** Which clicks are real: the one size that depends on what is fed, and on nothing but the mask. */
export function nonzero(node: GraphNode): KnownTensor[] {
  const value = node.given(0);
  if (value.shape.length !== 1 || !value.ofMask || !value.some)
    node.refuse("it may ask only the mask of clicks, in one row that begins with 1, how large its result is");
  const axis = `real${node.free.size}`;
  const [, most] = node.bounds(countOf(value));
  node.free.set(axis, countOf(value));
  node.axes.set(axis, [1n, most > 1n ? most : 1n]);
  return [{ element: INT64, shape: [1n, Polynomial.of(axis)] }];
}
