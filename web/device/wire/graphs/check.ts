// Which graphs a release may bring: those whose course no number can change that they are fed.
//
// Nothing in them loops, branches, calls, reads files, divides whole numbers or makes sizes of data, so what a run costs
// is known beforehand. Each graph is checked before ONNX Runtime sees it, by the rules of device_app/wire/graphs.
import { AXES_OF_A_RUN, type FreeAxis, GREATEST_AXIS, GraphCosts } from "./costs";
import { EXACT_FLOAT } from "./layout";
import {
  GraphRefused,
  type ParsedAttribute,
  type ParsedDeclared,
  type ParsedGraph,
  type ParsedNode,
  type ParsedTensor,
  readModel,
} from "./message";
import { ALL, FLAGS, OPERATORS, type OperatorForm } from "./operators";
import { Polynomial, type Size, Weighted, listed } from "./sizes";
import {
  type Attribute,
  CONTENT_LIMIT,
  FLOAT,
  GraphNode,
  INT32,
  INT64,
  type KnownTensor,
  RANK_LIMIT,
  type Shape,
  countOf,
  sameShape,
  shownType,
  widthOf,
  within,
} from "./values";

const OPSET = 18n;
const [OLDEST_IR, NEWEST_IR] = [8n, 10n];
const FILE_LIMIT_BYTES = 1024 * 1024;
/** Our largest has 871. */
const NODES_LIMIT = 4_000;
const MASKS: readonly string[] = ["click_mask", "membership", "word_mask", "abstract_mask"];
const DEFAULT_DOMAINS: readonly string[] = ["", "ai.onnx"];
const PARTS = ["f", "i", "s", "ints"] as const;
const NOTHING = "None";

/** What a run costs. Throws GraphRefused, naming node, operator and limit, for what no release may bring. */
export function checkGraph(content: Uint8Array): GraphCosts {
  if (content.length > FILE_LIMIT_BYTES)
    throw new GraphRefused(`it has ${content.length} bytes, the limit is ${FILE_LIMIT_BYTES}`);
  const model = readModel(content);
  const version = model.ir_version ?? 0n;
  if (version < OLDEST_IR || version > NEWEST_IR)
    throw new GraphRefused(
      `its ir_version is ${model.ir_version ?? NOTHING}, allowed are ${OLDEST_IR} to ${NEWEST_IR}`,
    );
  const sets = model.operator_sets;
  if (sets.length !== 1 || !DEFAULT_DOMAINS.includes(sets[0]?.domain ?? "") || sets[0]?.version !== OPSET) {
    const shown = sets.map((each) => `('${each.domain ?? ""}', ${each.version ?? NOTHING})`).join(", ");
    throw new GraphRefused(`its operator sets are [${shown}], allowed is ONNX's own of version ${OPSET}`);
  }
  if (!model.graph) throw new GraphRefused("it has no graph");
  return new Course(model.graph).costs();
}

/** A graph walked through once, node by node. */
class Course {
  private readonly values = new Map<string, KnownTensor>();
  private readonly axes = new Map<string, readonly [bigint, bigint]>([...AXES_OF_A_RUN].map(([axis, size]) => [axis, [1n, size]]));
  private readonly made = new Map<string, Size>();
  private readonly sound = new Set<string>();
  private readonly memory = new Weighted();
  private readonly work = new Weighted();

  constructor(private readonly graph: ParsedGraph) {}

  costs(): GraphCosts {
    const { nodes, inputs, initializers, outputs } = this.graph;
    if (nodes.length > NODES_LIMIT) throw new GraphRefused(`it has ${nodes.length} nodes, the limit is ${NODES_LIMIT}`);
    const free: FreeAxis[] = [];
    for (const each of inputs) {
      const { name, element, shape } = declared(each, "input");
      const axes = shape.flatMap((axis, place) => (typeof axis === "string" ? [{ input: name, place, axis }] : []));
      if (axes[0] && name.startsWith("p."))
        throw new GraphRefused(`input ${name} is a parameter, and has the free axis ${axes[0].axis}`);
      free.push(...axes);
      this.define(name, { element, shape: sizesOf(shape), ofMask: MASKS.includes(name) }, `input ${name}`);
    }
    for (const each of initializers)
      this.define(each.name ?? "", initializer(each), `initializer ${each.name ?? NOTHING}`);
    for (const [place, each] of nodes.entries()) this.step(each, `node ${place} (${each.operator ?? NOTHING})`);
    for (const each of outputs) this.output(each);
    const costs = new GraphCosts(free, this.memory.total(), this.work.total(), this.made);
    costs.requireDaily();
    return costs;
  }

  private define(name: string, value: KnownTensor, where: string): void {
    if (!name || this.values.has(name)) throw new GraphRefused(`${where}: its name is empty, or that of something else`);
    if (value.shape.length > RANK_LIMIT)
      throw new GraphRefused(`${where}: it has ${value.shape.length} axes, the limit is ${RANK_LIMIT}`);
    this.values.set(name, value);
    this.memory.add(countOf(value), widthOf(value.element));
  }

  private step(given: ParsedNode, where: string): void {
    try {
      this.run(given, where);
    } catch (refused) {
      if (!(refused instanceof GraphRefused)) throw refused;
      throw new GraphRefused(`${where}: ${refused.message}`);
    }
  }

  private run(given: ParsedNode, where: string): void {
    const operator = OPERATORS.get(given.operator ?? "");
    const domain = given.domain ?? "";
    if (!operator || !DEFAULT_DOMAINS.includes(domain))
      throw new GraphRefused(`no operator that a graph of a release may have (domain ${quoted(domain)})`);
    const missing = given.inputs.find((name) => name && !this.values.has(name));
    if (missing !== undefined) throw new GraphRefused(`its input ${missing} comes from nothing before it`);
    const inputs = given.inputs.map((name) => this.values.get(name) ?? null);
    const attributes = attributesOf(given.attributes, operator);
    const node = new GraphNode(given.operator ?? "", inputs, given.outputs.length, attributes, this.axes, this.made);
    requireForm(node, operator);
    const results = operator.rule(node);
    const ofMask = given.operator === "Shape" || node.ofMask();
    for (const [place, value] of results.entries()) {
      this.requireSound(node, value.shape);
      const name = given.outputs[place];
      if (!name) continue;
      const content = value.content && value.content.length <= CONTENT_LIMIT ? value.content : null;
      this.define(name, { ...value, content: content?.length ? content : null, ofMask }, where);
    }
    for (const each of [...inputs, ...results]) if (each) this.work.add(countOf(each), operator.cost);
    this.work.add(node.multiplyAdds, 1n);
    this.memory.add(node.scratchBytes, 1n);
  }

  private requireSound(node: GraphNode, shape: Shape): void {
    for (const size of shape) {
      if (this.sound.has(String(size))) continue;
      within(node, size, 0n);
      this.sound.add(String(size));
    }
  }

  private output(given: ParsedDeclared): void {
    const { name, element, shape } = declared(given, "output");
    const value = this.values.get(name);
    if (!value) throw new GraphRefused(`output ${name} comes from no node`);
    if (value.element === element && sameShape(value.shape, sizesOf(shape))) return;
    const axes = shape.map((axis) => (typeof axis === "string" ? quoted(axis) : axis)).join(", ");
    throw new GraphRefused(
      `output ${name} is declared ${shownType(element)} [${axes}], it is ${shownType(value.element)} ` +
        listed(value.shape),
    );
  }
}

function requireForm(node: GraphNode, operator: OperatorForm): void {
  const [fewest, most] = operator.inputs;
  if (node.inputs.length < fewest || node.inputs.length > most)
    node.refuse(`it has ${node.inputs.length} inputs, allowed are ${fewest} to ${most}`);
  const [least, all] = operator.outputs;
  if (node.outputs < least || node.outputs > all)
    node.refuse(`it has ${node.outputs} outputs, allowed are ${least} to ${all}`);
  const { element } = node.given(0);
  if (!operator.elements.includes(element)) node.refuse(`it works on ${shownType(element)}, which no graph of a release does`);
}

function attributesOf(given: readonly ParsedAttribute[], operator: OperatorForm): Map<string, Attribute> {
  const found = new Map<string, Attribute>();
  const kinds = new Map<bigint | undefined, (typeof PARTS)[number]>([[1n, "f"], [2n, "i"], [3n, "s"], [7n, "ints"]]);
  for (const each of given) {
    const name = each.name ?? "";
    const held = kinds.get(each.type);
    const wanted = Object.hasOwn(operator.attributes, name) ? operator.attributes[name] : undefined;
    if (!held || wanted !== each.type || found.has(name))
      throw new GraphRefused(`its attribute ${quoted(name)} of type ${each.type ?? NOTHING} is not allowed`);
    const others = PARTS.filter((part) => part !== held && each[part] !== undefined && !(part === "ints" && !each.ints.length));
    if (others.length) throw new GraphRefused(`its attribute ${quoted(name)} has values of other types`);
    const value = each[held] ?? (held === "i" ? 0n : held === "s" ? "" : new Uint8Array(4));
    found.set(name, value);
    if (FLAGS.includes(name) && value !== 0n && value !== 1n)
      throw new GraphRefused(`its attribute ${quoted(name)} is ${String(value)}, allowed are 0 and 1`);
  }
  return found;
}

function declared(given: ParsedDeclared, what: string): { name: string; element: number; shape: (bigint | string)[] } {
  const name = given.name ?? "";
  const { element, shape: written } = given.type?.tensor ?? {};
  if (!ALL.includes(Number(element)) || !written)
    throw new GraphRefused(`${what} ${name}: it has no shape, or numbers of type ${element ?? NOTHING}`);
  const shape = written.axes.map(({ size, name: free }) => {
    if ((size === undefined) === (free === undefined))
      throw new GraphRefused(`${what} ${name}: an axis has neither a size nor a name, or both`);
    if (free !== undefined && !AXES_OF_A_RUN.has(free))
      throw new GraphRefused(`${what} ${name}: its axis ${free} is none of ${[...AXES_OF_A_RUN.keys()].join(", ")}`);
    if (size !== undefined && (size <= 0n || size > GREATEST_AXIS))
      throw new GraphRefused(`${what} ${name}: an axis has size ${size}, allowed are 1 to ${GREATEST_AXIS}`);
    return free ?? (size as bigint);
  });
  return { name, element: Number(element), shape };
}

function sizesOf(shape: readonly (bigint | string)[]): Shape {
  return shape.map((axis) => (typeof axis === "string" ? Polynomial.of(axis) : axis));
}

function initializer(given: ParsedTensor): KnownTensor {
  const { dims: shape, raw = new Uint8Array(), name = NOTHING } = given;
  const element = Number(given.element);
  if (!ALL.includes(element) || shape.length > RANK_LIMIT || shape.some((size) => size < 0n))
    throw new GraphRefused(`initializer ${name}: type ${given.element ?? NOTHING}, shape ${listed(shape)}`);
  const count = shape.reduce((all, size) => all * size, 1n);
  if (count * widthOf(element) !== BigInt(raw.length))
    throw new GraphRefused(
      `initializer ${name}: ${raw.length} bytes, its shape ${listed(shape)} says ${count * widthOf(element)}`,
    );
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const all = { length: Number(count) };
  const some = element === INT64 && raw.some((byte) => byte !== 0);
  let content: bigint[] | null = null;
  if (shape.length < 2 && all.length <= CONTENT_LIMIT) {
    if (element === INT64) content = Array.from(all, (_, at) => view.getBigInt64(8 * at, true));
    else if (element === INT32) content = Array.from(all, (_, at) => BigInt(view.getInt32(4 * at, true)));
    else if (element === FLOAT) content = wholeNumbers(Array.from(all, (_, at) => view.getFloat32(4 * at, true)));
  }
  return { element, shape, content, ofMask: true, some };
}

function wholeNumbers(numbers: readonly number[]): bigint[] | null {
  const whole = numbers.every((each) => Math.abs(each) < Number(EXACT_FLOAT) && Math.trunc(each) === each);
  return whole ? numbers.map(BigInt) : null;
}

/** As the Python device writes a name. */
function quoted(name: string): string {
  const mark = name.includes("'") && !name.includes('"') ? '"' : "'";
  const plain = name.replaceAll("\\", "\\\\");
  return mark + (mark === "'" ? plain.replaceAll("'", "\\'") : plain) + mark;
}
