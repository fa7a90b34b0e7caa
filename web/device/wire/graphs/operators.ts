// The operators that a graph of a release may have, and what follows from each: shapes, content, and how much it costs.
//
// An operator is here if a release needs it and if, whatever numbers it is fed, it ends, neither divides whole numbers
// nor asks data how large its result is. The table is that of device_app/wire/graphs/operators.py.
import * as layout from "./layout";
import * as rows from "./rows";
import * as sums from "./sums";
import { BOOL, DOUBLE, FLOAT, type GraphNode, INT32, INT64, type KnownTensor, joined } from "./values";

type Rule = (node: GraphNode) => KnownTensor[];
type Span = readonly [least: number, most: number];

const FLOATS = [FLOAT, DOUBLE];
const NUMBERS = [...FLOATS, INT32, INT64];
export const ALL: readonly number[] = [...NUMBERS, BOOL];
/** Types of attributes, as ONNX counts them. */
const [INTEGER, INTEGERS, NUMBER, TEXT] = [2n, 7n, 1n, 3n] as const;
/** Attributes that are 0 or 1: of others ONNX Runtime makes what it likes. */
export const FLAGS: readonly string[] = ["keepdims", "transA", "transB", "linear_before_reset"];
/** Of a number that is moved or added, and of an exponential, in multiply-adds of a matrix product. */
const [CHEAP, DEAR] = [8n, 64n];

/**
 * elements: what its first input may hold; inputs: how many it takes at least and at most; attributes: by name the type;
 * cost: multiply-adds for each number that goes in or out, beside what its rule counts.
 */
export interface OperatorForm {
  readonly rule: Rule;
  readonly elements: readonly number[];
  readonly inputs: Span;
  readonly attributes: Readonly<Record<string, bigint>>;
  readonly outputs: Span;
  readonly cost: bigint;
}

type More = Partial<Pick<OperatorForm, "attributes" | "outputs" | "cost">>;

function form(rule: Rule, elements: readonly number[], inputs: Span, more: More = {}): OperatorForm {
  return { attributes: {}, outputs: [1, 1], cost: CHEAP, ...more, rule, elements, inputs };
}

function forms(names: string, made: OperatorForm): [string, OperatorForm][] {
  return names.split(" ").map((name) => [name, made]);
}

function elementwise(node: GraphNode): KnownTensor[] {
  const [first, second] = [node.given(0), node.given(1)];
  if (first.element !== second.element) node.refuse(`its inputs hold ${first.element} and ${second.element}`);
  const shape = joined(node, first.shape, second.shape);
  const content = first.element === INT64 && shape.length < 2 ? layout.arithmetic(node, first, second) : null;
  return [{ element: first.element, shape, content }];
}

function comparison(node: GraphNode): KnownTensor[] {
  return elementwise(node).map(({ shape }) => ({ element: BOOL, shape }));
}

function unary(node: GraphNode): KnownTensor[] {
  const { element, shape } = node.given(0);
  return [{ element, shape }];
}

function where(node: GraphNode): KnownTensor[] {
  const [condition, first, second] = [node.given(0), node.given(1), node.given(2)];
  if (first.element !== second.element) node.refuse(`its inputs hold ${first.element} and ${second.element}`);
  return [{ element: first.element, shape: joined(node, condition.shape, first.shape, second.shape) }];
}

const ALONG = { axis: INTEGER };
const KEPT = { keepdims: INTEGER };
const FLAGGED = { transA: INTEGER, transB: INTEGER };
const NORMED = { ...ALONG, epsilon: NUMBER };
const STEPPED = { hidden_size: INTEGER, linear_before_reset: INTEGER };
const REPLACED = { reduction: TEXT };

export const OPERATORS: ReadonlyMap<string, OperatorForm> = new Map([
  ...forms("Add Sub Mul", form(elementwise, [...FLOATS, INT64], [2, 2])),
  ...forms("Div Max Min", form(elementwise, FLOATS, [2, 2])),
  ...forms("Pow", form(elementwise, FLOATS, [2, 2], { cost: DEAR })),
  ...forms("Equal Less LessOrEqual Greater GreaterOrEqual", form(comparison, NUMBERS, [2, 2])),
  ...forms("And Or", form(comparison, [BOOL], [2, 2])),
  ...forms("Not", form(unary, [BOOL], [1, 1])),
  ...forms("Neg Sqrt Abs Reciprocal Sign Relu", form(unary, FLOATS, [1, 1])),
  ...forms("Exp Log Tanh Sigmoid Erf", form(unary, FLOATS, [1, 1], { cost: DEAR })),
  ...forms("Softmax LogSoftmax", form(sums.softmax, FLOATS, [1, 1], { attributes: ALONG, cost: DEAR })),
  ...forms(
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceL2",
    form(sums.reduced, FLOATS, [1, 2], { attributes: KEPT }),
  ),
  ...forms("Where", form(where, [BOOL], [3, 3])),
  ...forms("Cast", form(layout.cast, ALL, [1, 1], { attributes: { to: INTEGER } })),
  ...forms("Identity", form(layout.identity, ALL, [1, 1])),
  ...forms("Shape", form(layout.shape, ALL, [1, 1], { attributes: { start: INTEGER, end: INTEGER }, cost: 0n })),
  ...forms("Reshape", form(layout.reshape, ALL, [2, 2])),
  ...forms("Squeeze", form(layout.squeeze, ALL, [1, 2])),
  ...forms("Unsqueeze", form(layout.unsqueeze, ALL, [2, 2])),
  ...forms("Transpose", form(layout.transpose, ALL, [1, 1], { attributes: { perm: INTEGERS } })),
  ...forms("Concat", form(layout.concat, ALL, [1, 256], { attributes: ALONG })),
  ...forms("Split", form(layout.split, ALL, [2, 2], { attributes: ALONG, outputs: [1, 256] })),
  ...forms("Slice", form(layout.slices, ALL, [3, 5])),
  ...forms("Pad", form(layout.pad, ALL, [2, 3])),
  ...forms("Expand", form(layout.expand, ALL, [2, 2])),
  ...forms("Range", form(layout.span, [FLOAT, INT64], [3, 3])),
  ...forms("Gather", form(rows.gather, ALL, [2, 2], { attributes: ALONG })),
  ...forms("GatherND", form(rows.gatherNd, ALL, [2, 2])),
  ...forms("GatherElements", form(rows.gatherElements, ALL, [2, 2], { attributes: ALONG })),
  ...forms("ScatterND", form(rows.scatterNd, NUMBERS, [3, 3], { attributes: REPLACED })),
  ...forms("ScatterElements", form(rows.scatterElements, NUMBERS, [3, 3], { attributes: { ...ALONG, ...REPLACED } })),
  ...forms("NonZero", form(rows.nonzero, [INT64], [1, 1])),
  ...forms("MatMul", form(sums.matmul, FLOATS, [2, 2])),
  ...forms("Gemm", form(sums.gemm, FLOATS, [2, 3], { attributes: FLAGGED })),
  ...forms("ArgMax", form(sums.argmax, FLOATS, [1, 1], { attributes: { ...ALONG, ...KEPT } })),
  ...forms("CumSum", form(sums.cumulated, [...FLOATS, INT64], [2, 2])),
  ...forms("LayerNormalization", form(sums.layerNorm, [FLOAT], [2, 3], { attributes: NORMED, outputs: [1, 3] })),
  ...forms("GRU", form(sums.gru, [FLOAT], [5, 6], { attributes: STEPPED, outputs: [1, 2], cost: DEAR })),
]);
