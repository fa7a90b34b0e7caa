// A server's summary of the lists that reports by a codebook lead to: a few vectors, the same for every device.
import { CODEBOOK_LIMIT } from "./recall";
import { TensorError, type TensorSpec, asFloat32, unpack } from "./tensors";
import type { Bytes } from "./forms";

const DIMENSIONS_LIMIT = 4_096;
const BLOB_LIMIT_BYTES = 16 * 1024 * 1024;
const free = (...shape: (number | null)[]): TensorSpec => ({ dtype: "float32", shape, axisLimit: DIMENSIONS_LIMIT });
const perReport: TensorSpec = { dtype: "float32", shape: [null], axisLimit: CODEBOOK_LIMIT };

/** K basic interests, and the pool's popularity as seen from each; matrices in rows. */
export interface ReportLists {
  readonly size: number;
  readonly dimensions: number;
  readonly prototypes: Float32Array;
  readonly logNormalisers: Float32Array;
  readonly slopes: Float32Array;
  /** Share of readers at each, summing to 1. */
  readonly shares: Float32Array;
  readonly axes: Float32Array;
  readonly sharpness: number;
}

/** The lists of a material. Throws TensorError. */
export function unpackReportLists(blob: Bytes): ReportLists {
  const specs = {
    prototypes: free(null, null),
    log_normalisers: perReport,
    slopes: free(null, null),
    shares: perReport,
    axes: free(null, null),
    sharpness: free(1),
  };
  const found = unpack(blob, specs, BLOB_LIMIT_BYTES);
  const [size = 0, dimensions = 0] = found.prototypes.shape;
  const wanted = { log_normalisers: [size], slopes: [size, dimensions], shares: [size] } as const;
  for (const [name, shape] of Object.entries(wanted) as [keyof typeof wanted, readonly number[]][])
    if (found[name].shape.join() !== shape.join())
      throw new TensorError(`tensor ${name}: shape (${found[name].shape.join(", ")}), expected (${shape.join(", ")})`);
  const shares = asFloat32(found.shares);
  if (found.axes.shape[1] !== dimensions)
    throw new TensorError(`tensor axes: ${found.axes.shape[1]} dimensions, expected ${dimensions}`);
  if (!shares.length || !shares.every((share) => share > 0))
    throw new TensorError("tensor shares: every share must be above 0");
  return {
    size,
    dimensions,
    prototypes: asFloat32(found.prototypes),
    logNormalisers: asFloat32(found.log_normalisers),
    slopes: asFloat32(found.slopes),
    shares,
    axes: asFloat32(found.axes),
    sharpness: asFloat32(found.sharpness)[0] ?? 0,
  };
}

/** log w_k(y), one row per report y: Bayes' rule after randomised response at epsilon, from the readers' shares. */
export function logPosterior(shares: ArrayLike<number>, epsilon: number): number[][] {
  const prior = Array.from(shares, Math.log);
  return prior.map((_, reported) => {
    const logs = prior.map((log, place) => log + (place === reported ? epsilon : 0));
    const most = Math.max(...logs);
    const total = most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0));
    return logs.map((log) => log - total);
  });
}

/** P(y | k) of randomised response, one row per true code k: the truth is e^eps times as likely as any other code. */
export function reportChances(size: number, epsilon: number): number[][] {
  const other = Math.exp(-epsilon);
  const all = 1 + (size - 1) * other;
  return Array.from({ length: size }, (_, truth) =>
    Array.from({ length: size }, (_, reported) => (reported === truth ? 1 : other) / all),
  );
}
