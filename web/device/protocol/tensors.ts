// Converts arrays to and from safetensors bytes, with declared shapes and dtypes; checks that values read are finite.
import { finite as allFinite } from "../vectors";
import type { Bytes } from "./forms";

export type DType = "float32" | "float16" | "int8" | "uint8" | "int32" | "int64";
export type TensorData =
  | Float32Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>;

/** data in C order; float16 as its bits, one Uint16 each (`asFloat32` converts them). */
export interface Tensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TensorData;
}

/** A tensor's declaration. null in `shape` leaves that axis free, up to `axisLimit`. */
export interface TensorSpec {
  readonly dtype: DType;
  readonly shape: readonly (number | null)[];
  readonly axisLimit?: number;
}

/** A blob that doesn't match its declaration; the message names the tensor and the limit. */
export class TensorError extends Error {}

const AXIS_LIMIT = 1_000_000;
const HEADER_LIMIT_BYTES = 100_000_000;

interface Carried {
  readonly dtype: DType;
  readonly name: string;
  readonly width: number;
  readonly over: (buffer: ArrayBuffer, length: number) => TensorData;
}

/** In safetensors' layout order: the widest and highest type first. */
const CARRIED: readonly Carried[] = [
  { dtype: "int64", name: "I64", width: 8, over: (buffer, length) => new BigInt64Array(buffer, 0, length) },
  { dtype: "float32", name: "F32", width: 4, over: (buffer, length) => new Float32Array(buffer, 0, length) },
  { dtype: "int32", name: "I32", width: 4, over: (buffer, length) => new Int32Array(buffer, 0, length) },
  { dtype: "float16", name: "F16", width: 2, over: (buffer, length) => new Uint16Array(buffer, 0, length) },
  { dtype: "int8", name: "I8", width: 1, over: (buffer, length) => new Int8Array(buffer, 0, length) },
  { dtype: "uint8", name: "U8", width: 1, over: (buffer, length) => new Uint8Array(buffer, 0, length) },
];

function carried(dtype: DType, name: string): Carried {
  const found = CARRIED.find((each) => each.dtype === dtype);
  if (!found) throw new TensorError(`tensor ${name}: dtype ${dtype} is not allowed on the wire`);
  return found;
}

/** Writes tensors as one safetensors blob; the same tensors give the same bytes as in Python. */
export function pack(tensors: Readonly<Record<string, Tensor>>): Bytes {
  const names = Object.keys(tensors).sort((one, other) => (one < other ? -1 : 1));
  const header: string[] = [];
  const parts: Uint8Array[] = [];
  let size = 0;
  for (const kind of CARRIED) {
    for (const name of names) {
      const tensor = tensors[name];
      if (!tensor || carried(tensor.dtype, name) !== kind) continue;
      const { buffer, byteOffset, byteLength } = tensor.data;
      if (byteLength !== elements(tensor.shape) * kind.width)
        throw new TensorError(`tensor ${name}: ${byteLength} bytes for shape ${tensor.shape.join()}`);
      const end = size + byteLength;
      header.push(
        `${JSON.stringify(name)}:{"dtype":"${kind.name}","shape":[${tensor.shape.join()}],"data_offsets":[${size},${end}]}`,
      );
      parts.push(new Uint8Array(buffer, byteOffset, byteLength));
      size = end;
    }
  }
  const text = new TextEncoder().encode(`{${header.join()}}`);
  const width = Math.ceil(text.length / 8) * 8;
  const blob = new Uint8Array(8 + width + size).fill(0x20, 8, 8 + width);
  new DataView(blob.buffer).setBigUint64(0, BigInt(width), true);
  blob.set(text, 8);
  let at = 8 + width;
  for (const part of parts) {
    blob.set(part, at);
    at += part.length;
  }
  return blob;
}

/** Reads a blob that must hold exactly the tensors of `specs`. Throws TensorError, naming the fault. */
export function unpack<N extends string>(
  blob: Bytes,
  specs: Readonly<Record<N, TensorSpec>>,
  limitBytes: number,
): Readonly<Record<N, Tensor>> {
  if (blob.length > limitBytes) throw new TensorError(`blob of ${blob.length} bytes, limit ${limitBytes}`);
  const tensors = load(blob);
  const missing = Object.keys(specs)
    .sort()
    .find((name) => !tensors.has(name));
  if (missing !== undefined) throw new TensorError(`tensor ${missing}: missing`);
  const unknown = [...tensors.keys()].sort().find((name) => !Object.hasOwn(specs, name));
  if (unknown !== undefined) throw new TensorError(`tensor ${unknown}: not expected here`);
  for (const [name, spec] of Object.entries<TensorSpec>(specs)) check(name, spec, tensors.get(name) as Tensor);
  return Object.fromEntries(tensors) as Record<N, Tensor>;
}

function check(name: string, spec: TensorSpec, tensor: Tensor): void {
  const limit = spec.axisLimit ?? AXIS_LIMIT;
  if (tensor.dtype !== spec.dtype)
    throw new TensorError(`tensor ${name}: dtype ${tensor.dtype}, expected ${spec.dtype}`);
  const fits =
    tensor.shape.length === spec.shape.length &&
    tensor.shape.every((size, axis) => (spec.shape[axis] === null ? size <= limit : size === spec.shape[axis]));
  if (!fits) {
    const wanted = spec.shape.map((axis) => axis ?? "any").join(", ");
    throw new TensorError(
      `tensor ${name}: shape (${tensor.shape.join(", ")}), expected (${wanted}), free axes up to ${limit}`,
    );
  }
  if (!finite(tensor)) throw new TensorError(`tensor ${name}: has values that are not finite`);
}

function finite(tensor: Tensor): boolean {
  if (tensor.dtype === "float32") return allFinite(tensor.data as Float32Array);
  return tensor.dtype !== "float16" || (tensor.data as Uint16Array).every((bits) => (bits & 0x7c00) !== 0x7c00);
}

/**
 * Reads every tensor of a safetensors blob, as strictly as the format's own reader: no gaps, overlaps or trailing data.
 */
export function load(blob: Bytes): ReadonlyMap<string, Tensor> {
  const broken = (why: string): TensorError => new TensorError(`not a safetensors blob: ${why}`);
  if (blob.length < 8) throw broken("no header");
  const width = new DataView(blob.buffer, blob.byteOffset).getBigUint64(0, true);
  if (width > BigInt(HEADER_LIMIT_BYTES)) throw broken("a header too large");
  const start = 8 + Number(width);
  if (start > blob.length) throw broken("the header is cut off");
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(blob.subarray(8, start)));
  } catch {
    throw broken("the header is no JSON");
  }
  if (blob[8] !== 0x7b || typeof header !== "object" || header === null) throw broken("the header is not an object");
  const found: { name: string; kind: Carried; shape: number[]; from: number; to: number }[] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const { dtype, shape, data_offsets: span } = (entry ?? {}) as Record<string, unknown>;
    const kind = CARRIED.find((each) => each.name === dtype);
    if (!kind) throw broken(`tensor ${name}: dtype ${String(dtype)} is not allowed on the wire`);
    if (!natural(shape) || !natural(span) || span.length !== 2) throw broken(`tensor ${name}: no shape or place`);
    const [from = 0, to = 0] = span;
    if (to - from !== elements(shape) * kind.width) throw broken(`tensor ${name}: its size doesn't fit its shape`);
    found.push({ name, kind, shape, from, to });
  }
  found.sort((one, other) => one.from - other.from || one.to - other.to);
  const tensors = new Map<string, Tensor>();
  let at = 0;
  for (const { name, kind, shape, from, to } of found) {
    if (from !== at) throw broken(`tensor ${name}: overlaps, or leaves a gap`);
    at = to;
    if (start + to > blob.length) throw broken(`tensor ${name}: is cut off`);
    const data = kind.over(blob.slice(start + from, start + to).buffer, elements(shape));
    tensors.set(name, { dtype: kind.dtype, shape, data });
  }
  if (start + at !== blob.length) throw broken("bytes beyond the last tensor");
  return tensors;
}

function natural(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && each >= 0);
}

function elements(shape: readonly number[]): number {
  return shape.reduce((all, axis) => all * axis, 1);
}

/** Converts a float32 or float16 tensor to float32 exactly. */
export function asFloat32(tensor: Tensor): Float32Array<ArrayBuffer> {
  if (tensor.dtype === "float32") return tensor.data as Float32Array<ArrayBuffer>;
  if (tensor.dtype !== "float16") throw new TensorError(`dtype ${tensor.dtype}: expected floating-point numbers`);
  return Float32Array.from(tensor.data as Uint16Array, (bits) => {
    const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 0x3ff];
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
  });
}

/** Multiplies rows of codes int8 [n, D] by their scales [n]: float32 [n, D], each product rounded once. */
export function dequantise(codes: Int8Array, scales: Float32Array): Float32Array<ArrayBuffer> {
  const dimensions = scales.length ? codes.length / scales.length : 0;
  const found = new Float32Array(codes.length);
  for (let row = 0, place = 0; row < scales.length; row++) {
    const [scale, end] = [scales[row] as number, (row + 1) * dimensions];
    for (; place < end; place++) found[place] = (codes[place] as number) * scale;
  }
  return found;
}
