// Rows of float32 numbers, in place of numpy's two-dimensional arrays. Inner products are summed in doubles and rounded
// once, where numpy sums in float32, so the last digits differ.

/** rows x width numbers, row after row. */
export interface Vectors {
  readonly data: Float32Array;
  readonly rows: number;
  readonly width: number;
}

/** These numbers as rows of `width` each. Throws RangeError if the last row is incomplete. */
export function vectors(data: Float32Array, width: number): Vectors {
  if (width < 0 || (width ? data.length % width : data.length)) throw new RangeError(`${data.length} numbers in rows of ${width}`);
  return { data, rows: width ? data.length / width : 0, width };
}

/** Returns vectors without rows. */
export function noVectors(width: number): Vectors {
  return { data: new Float32Array(0), rows: 0, width };
}

/** One row, or none. */
export function rowsOf(row: Float32Array | null): Vectors {
  return row ? { data: row, rows: 1, width: row.length } : noVectors(0);
}

/** Row `at`, over the same memory. */
export function rowOf(all: Vectors, at: number): Float32Array {
  return all.data.subarray(at * all.width, (at + 1) * all.width);
}

/** Stacks rows vertically. */
export function stacked(rows: readonly Float32Array[], width: number): Vectors {
  const data = new Float32Array(rows.length * width);
  rows.forEach((row, at) => data.set(row, at * width));
  return { data, rows: rows.length, width };
}

/** Selects these rows, in this order. */
export function taken(all: Vectors, rows: readonly number[]): Vectors {
  const data = new Float32Array(rows.length * all.width);
  rows.forEach((row, at) => data.set(rowOf(all, row), at * all.width));
  return { data, rows: rows.length, width: all.width };
}

/** The rows of both. */
export function concatenated(one: Vectors, other: Vectors): Vectors {
  if (!one.rows) return other;
  if (!other.rows) return one;
  const data = new Float32Array(one.data.length + other.data.length);
  data.set(one.data);
  data.set(other.data, one.data.length);
  return { data, rows: one.rows + other.rows, width: one.width };
}

/**
 * The inner product of `width` numbers starting at two positions, in doubles; four parallel sums keep the processor
 * busy.
 */
function dot(one: Float32Array, from: number, other: Float32Array, at: number, width: number): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  let axis = 0;
  for (; axis + 4 <= width; axis += 4) {
    a += (one[from + axis] as number) * (other[at + axis] as number);
    b += (one[from + axis + 1] as number) * (other[at + axis + 1] as number);
    c += (one[from + axis + 2] as number) * (other[at + axis + 2] as number);
    d += (one[from + axis + 3] as number) * (other[at + axis + 3] as number);
  }
  for (; axis < width; axis++) a += (one[from + axis] as number) * (other[at + axis] as number);
  return a + b + c + d;
}

/** <one, other>, rounded to float32 once. */
export function product(one: Float32Array, other: Float32Array): number {
  return Math.fround(dot(one, 0, other, 0, one.length));
}

/** The inner product of two rows, as `product` gives it. */
export function productOf(all: Vectors, one: number, other: number): number {
  return Math.fround(dot(all.data, one * all.width, all.data, other * all.width, all.width));
}

/** <row, vector> for every row, [rows] float32. */
export function products(all: Vectors, vector: Float32Array): Float32Array {
  const found = new Float32Array(all.rows);
  for (let at = 0; at < all.rows; at++) found[at] = dot(all.data, at * all.width, vector, 0, all.width);
  return found;
}

/** Length of a row, float32. */
export function lengthOf(row: Float32Array): number {
  return Math.fround(Math.sqrt(dot(row, 0, row, 0, row.length)));
}

/** Rows scaled to length 1; rows of zeros stay zeros. */
export function unit(all: Vectors): Vectors {
  const data = new Float32Array(all.data.length);
  for (let at = 0; at < all.rows; at++) {
    const length = lengthOf(rowOf(all, at)) || 1;
    for (let place = at * all.width; place < (at + 1) * all.width; place++) data[place] = (all.data[place] as number) / length;
  }
  return { data, rows: all.rows, width: all.width };
}

/** The mean of the rows in doubles, [width]; null without rows. */
export function meanOf(all: Vectors): Float64Array | null {
  if (!all.rows) return null;
  const mean = new Float64Array(all.width);
  for (let at = 0, place = 0; at < all.rows; at++)
    for (let axis = 0; axis < all.width; axis++, place++) mean[axis] = (mean[axis] as number) + (all.data[place] as number);
  return mean.map((sum) => sum / all.rows);
}

/** A vector of doubles scaled to length 1, as float32; zeros stay zeros. */
export function scaled(vector: Float64Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0));
  return Float32Array.from(vector, (each) => (length > 0 ? each / length : each));
}

/** Whether all numbers are finite. */
export function finite(data: Float32Array | Float64Array): boolean {
  // an iterator takes five times as long
  for (let at = 0; at < data.length; at++) if (!Number.isFinite(data[at])) return false;
  return true;
}

/** Indices of `values` by descending value, ties in order (numpy's stable argsort of -values). */
export function bestFirst(values: ArrayLike<number>, among?: readonly number[]): number[] {
  const places = among ? [...among] : Array.from({ length: values.length }, (_, at) => at);
  return places.sort((one, other) => {
    const [a, b] = [values[one] as number, values[other] as number];
    return a === b ? 0 : b > a ? 1 : -1;
  });
}

/** The mean; 0 for an empty array. */
export function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at] as number;
  return values.length ? sum / values.length : 0;
}

/** The population standard deviation; 0 for an empty array. */
export function deviation(values: ArrayLike<number>): number {
  const middle = mean(values);
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += ((values[at] as number) - middle) ** 2;
  return values.length ? Math.sqrt(sum / values.length) : 0;
}
