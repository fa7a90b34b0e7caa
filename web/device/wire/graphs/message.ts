// ONNX's file format, read strictly: whatever a reader could understand in two ways is refused.
//
// The fields are those of onnx.proto; only those stand here that a graph of a release has. As in
// device_app/wire/graphs/message.py, to the words of a refusal.
const VARINT = 0;
const BYTES = 2;
const FIXED32 = 5;
const VARINT_LIMIT_BYTES = 10;
const NAME_LIMIT = 200;
/** Of one file: ten times the fields of the largest graph of ours. */
const FIELDS_LIMIT = 100_000;

/** A graph that no device opens; the message is half a sentence that names the place and the limit. */
export class GraphRefused extends Error {}

type Fields = ReadonlyMap<number, Field>;
type Kind = "integer" | "name" | "bytes" | "float" | Fields;

/** kind: a message's own fields, if it is one; repeated: may stand several times, or packed. */
interface Field {
  readonly name: string;
  readonly kind: Kind;
  readonly repeated: boolean;
}

type Written = Readonly<Record<number, readonly [name: string, kind: Kind, repeated?: "repeated"]>>;

/** Numbers as bigint, names as text; a field that may be absent is undefined then, repeated ones are always there. */
export interface ParsedAxis {
  readonly size?: bigint;
  readonly name?: string;
}
export interface ParsedDeclared {
  readonly name?: string;
  readonly type?: { readonly tensor?: { readonly element?: bigint; readonly shape?: { readonly axes: readonly ParsedAxis[] } } };
}
export interface ParsedTensor {
  readonly dims: readonly bigint[];
  readonly element?: bigint;
  readonly name?: string;
  readonly raw?: Uint8Array;
}
export interface ParsedAttribute {
  readonly name?: string;
  readonly f?: Uint8Array;
  readonly i?: bigint;
  readonly s?: string;
  readonly ints: readonly bigint[];
  readonly type?: bigint;
}
export interface ParsedNode {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly operator?: string;
  readonly domain?: string;
  readonly attributes: readonly ParsedAttribute[];
}
export interface ParsedGraph {
  readonly nodes: readonly ParsedNode[];
  readonly initializers: readonly ParsedTensor[];
  readonly inputs: readonly ParsedDeclared[];
  readonly outputs: readonly ParsedDeclared[];
}
export interface ParsedModel {
  readonly ir_version?: bigint;
  readonly graph?: ParsedGraph;
  readonly operator_sets: readonly { readonly domain?: string; readonly version?: bigint }[];
}

const AXIS = fields({ 1: ["size", "integer"], 2: ["name", "name"] });
const SHAPE = fields({ 1: ["axes", AXIS, "repeated"] });
const DECLARED = fields({
  1: ["name", "name"],
  2: ["type", fields({ 1: ["tensor", fields({ 1: ["element", "integer"], 2: ["shape", SHAPE] })] })],
});
const TENSOR = fields({
  1: ["dims", "integer", "repeated"],
  2: ["element", "integer"],
  8: ["name", "name"],
  9: ["raw", "bytes"],
});
const ATTRIBUTE = fields({
  1: ["name", "name"],
  2: ["f", "float"],
  3: ["i", "integer"],
  4: ["s", "name"],
  8: ["ints", "integer", "repeated"],
  20: ["type", "integer"],
});
const NODE = fields({
  1: ["inputs", "name", "repeated"],
  2: ["outputs", "name", "repeated"],
  3: ["name", "name"],
  4: ["operator", "name"],
  5: ["attributes", ATTRIBUTE, "repeated"],
  7: ["domain", "name"],
});
const GRAPH = fields({
  1: ["nodes", NODE, "repeated"],
  2: ["name", "name"],
  5: ["initializers", TENSOR, "repeated"],
  11: ["inputs", DECLARED, "repeated"],
  12: ["outputs", DECLARED, "repeated"],
});
const MODEL = fields({
  1: ["ir_version", "integer"],
  7: ["graph", GRAPH],
  8: ["operator_sets", fields({ 1: ["domain", "name"], 2: ["version", "integer"] }), "repeated"],
});

/** A model's fields by name. Throws GraphRefused for what isn't plain, or is no field of a graph of a release. */
export function readModel(content: Uint8Array): ParsedModel {
  return new WireReader(content).message(0, content.length, MODEL, "model") as unknown as ParsedModel;
}

class WireReader {
  private count = 0;
  private at = 0;

  constructor(private readonly content: Uint8Array) {}

  message(from: number, end: number, known: Fields, where: string): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    for (const { name, repeated } of known.values()) if (repeated) found[name] = [];
    this.at = from;
    while (this.at < end) {
      const key = this.varint(end, where);
      const [number, wire] = [key >> 3n, Number(key & 7n)];
      const field = known.get(Number(number));
      if (!field) throw new GraphRefused(`${where} has field ${number}, which no graph of a release has`);
      this.counted();
      const path = `${where}.${field.name}`;
      if (field.repeated) {
        this.oneMore(end, wire, field, path, found[field.name] as unknown[]);
        continue;
      }
      if (field.name in found) throw new GraphRefused(`${path} stands there twice`);
      found[field.name] = this.value(end, wire, field, path);
    }
    return found;
  }

  private counted(): void {
    this.count += 1;
    if (this.count > FIELDS_LIMIT) throw new GraphRefused(`it has more than ${FIELDS_LIMIT} fields`);
  }

  private oneMore(end: number, wire: number, field: Field, path: string, values: unknown[]): void {
    if (field.kind !== "integer" || wire !== BYTES) {
      values.push(this.value(end, wire, field, path));
      return;
    }
    const last = this.span(end, path); // packed
    while (this.at < last) {
      this.counted();
      values.push(BigInt.asIntN(64, this.varint(last, path)));
    }
  }

  private value(end: number, wire: number, { kind }: Field, path: string): unknown {
    const wanted = kind === "integer" ? VARINT : kind === "float" ? FIXED32 : BYTES;
    if (wire !== wanted) throw new GraphRefused(`${path} is written as wire type ${wire}, not ${wanted}`);
    if (kind === "integer") return BigInt.asIntN(64, this.varint(end, path));
    if (kind === "float") {
      if (end - this.at < 4) throw new GraphRefused(`${path} is cut off`);
      this.at += 4;
      return this.content.subarray(this.at - 4, this.at);
    }
    const last = this.span(end, path);
    if (typeof kind !== "string") return this.message(this.at, last, kind, path);
    const part = this.content.subarray(this.at, last);
    this.at = last;
    return kind === "bytes" ? part : nameOf(part, path);
  }

  /** Where a part ends, whose length stands here. */
  private span(end: number, path: string): number {
    const length = this.varint(end, path);
    if (length > BigInt(end - this.at)) throw new GraphRefused(`${path} is longer than what holds it`);
    return this.at + Number(length);
  }

  private varint(end: number, path: string): bigint {
    let value = 0n;
    for (let place = 0; place < VARINT_LIMIT_BYTES; place++) {
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

/** Printable ASCII: names go into logs, and on the reader's pages. */
function nameOf(part: Uint8Array, path: string): string {
  if (part.length > NAME_LIMIT || !part.every((byte) => byte >= 0x20 && byte < 0x7f))
    throw new GraphRefused(`${path} is no name of at most ${NAME_LIMIT} printable ASCII characters`);
  return String.fromCharCode(...part);
}

function fields(written: Written): Fields {
  return new Map(
    Object.entries(written).map(([number, [name, kind, repeated]]): [number, Field] => [
      Number(number),
      { name, kind, repeated: repeated !== undefined },
    ]),
  );
}
