// A weighted update as one ring vector, and an opened sum of such vectors (Efficient-FedRec, section 3.4).
import { type FixedPoint, RingError, type RingVector, put, ringVector } from "./ring";

/** A tensor of an update: its values in C order, and its shape. */
export interface Values {
  readonly shape: readonly number[];
  readonly values: ArrayLike<number>;
}

/** Texts in the order of their code points, as Python sorts them. */
export function byCodePoint(one: string, other: string): number {
  const [a, b] = [[...one], [...other]];
  for (let place = 0; place < Math.min(a.length, b.length); place++) {
    const difference = (a[place]?.codePointAt(0) ?? 0) - (b[place]?.codePointAt(0) ?? 0);
    if (difference) return difference;
  }
  return a.length - b.length;
}

/** Where everything stands in the vector: [n_u g by ascending name, each in C order | n_u]. */
export class UpdateLayout {
  private readonly places: readonly { readonly name: string; readonly start: number; readonly size: number }[];
  /** Numbers of an update without n_u. */
  readonly coordinates: number;

  /** shapes: of the tensors, by name. fixed: the code of n_u g. samplesLimit: the cap of n_u. */
  constructor(
    readonly shapes: ReadonlyMap<string, readonly number[]>,
    readonly fixed: FixedPoint,
    readonly samplesLimit: number,
  ) {
    if (!shapes.size) throw new RangeError("shapes: an update has at least one tensor");
    if (samplesLimit < 1) throw new RangeError(`samples_limit: at least 1, got ${samplesLimit}`);
    if (fixed.contributors * samplesLimit >= 2 ** (fixed.bits - 1))
      throw new RingError(
        `overflow: ${fixed.contributors} x ${samplesLimit} samples must be below 2^${fixed.bits - 1}`,
      );
    let start = 0;
    this.places = [...shapes.keys()].sort(byCodePoint).map((name) => {
      const size = (shapes.get(name) ?? []).reduce((all, axis) => all * axis, 1);
      start += size;
      return { name, start: start - size, size };
    });
    this.coordinates = start;
  }

  /** Ring elements of a vector. */
  get length(): number {
    return this.coordinates + 1;
  }

  /**
   * A device's vector from its mean gradient g_u and its n_u. Throws RangeError for another name or shape, or n_u
   * outside 1 .. samplesLimit; RingError for NaN.
   */
  encode(update: ReadonlyMap<string, Values>, samples: number): RingVector {
    if (!(samples >= 1 && samples <= this.samplesLimit))
      throw new RangeError(`samples: 1 to ${this.samplesLimit}, got ${samples}`);
    if (update.size !== this.shapes.size || [...update.keys()].some((name) => !this.shapes.has(name)))
      throw new RangeError(
        `tensors: expected ${[...this.shapes.keys()].join(", ")}, got ${[...update.keys()].join(", ")}`,
      );
    const vector = ringVector(this.length, this.fixed.bits);
    for (const { name, start, size } of this.places) {
      const tensor = update.get(name);
      const shape = this.shapes.get(name) ?? [];
      if (!tensor || tensor.values.length !== size || tensor.shape.join() !== shape.join())
        throw new RangeError(`tensor ${name}: shape ${tensor?.shape.join()}, expected ${shape.join()}`);
      const codes = this.fixed.encode(Float64Array.from(tensor.values, (value) => samples * value));
      (vector.set as (codes: RingVector, start: number) => void).call(vector, codes, start);
    }
    put(vector, this.coordinates, samples);
    return vector;
  }

  /** All values in the order of the vector, as doubles. */
  flat(update: ReadonlyMap<string, Values>): Float64Array<ArrayBuffer> {
    const flat = new Float64Array(this.coordinates);
    for (const { name, start } of this.places) flat.set(Float64Array.from(update.get(name)?.values ?? []), start);
    return flat;
  }
}
