// Pads click histories at the front, and trims padding that is common to the whole batch.
import { type Vectors, taken } from "../vectors";
import { CLICKS_LIMIT } from "../protocol/recall";

/** The name of a graph's free click axis. */
export const CLICKS_AXIS = "clicks";

/** Numbers in C order, by axes. spent: they aren't read again, so a run may take over their memory. */
export interface Values {
  readonly dims: readonly number[];
  readonly data: Float32Array;
  readonly spent?: boolean;
}

/** How a graph declares an input or output; a free axis is given by its name. */
export interface Declared {
  readonly name: string;
  readonly shape: readonly (number | string)[];
}

/** Inputs that are 0 at padding in every model; the click axis is their last. */
const MASKS: readonly string[] = ["click_mask", "membership"];

/** [H, D] oldest first -> clicks [1, 50, D] and mask [1, 50]; keeps only the newest 50. */
export function leftPadded(clicks: Vectors): { clicks: Values; mask: Values } {
  const kept = Math.min(clicks.rows, CLICKS_LIMIT);
  const newest = taken(clicks, Array.from({ length: kept }, (_, at) => clicks.rows - kept + at));
  const padded = new Float32Array(CLICKS_LIMIT * clicks.width);
  padded.set(newest.data, (CLICKS_LIMIT - kept) * clicks.width);
  const mask = new Float32Array(CLICKS_LIMIT).fill(1, CLICKS_LIMIT - kept);
  return { clicks: { dims: [1, CLICKS_LIMIT, clicks.width], data: padded }, mask: { dims: [1, CLICKS_LIMIT], data: mask } };
}

/**
 * The position of the free click axis, by input and output name. No result depends on padding, so padding to the
 * longest history of the batch gives the same result at less cost.
 */
export class SharedPadding {
  private readonly inputs: ReadonlyMap<string, number>;
  private readonly outputs: ReadonlyMap<string, number>;

  constructor(inputs: readonly Declared[], outputs: readonly Declared[]) {
    this.inputs = axes(inputs);
    this.outputs = axes(outputs);
  }

  /** How many of the first click columns are padding in the whole batch; at least one column is always left. */
  count(inputs: Readonly<Record<string, Values>>): number {
    const name = MASKS.find((each) => this.inputs.has(each) && each in inputs);
    const mask = name === undefined ? undefined : inputs[name];
    if (!mask) return 0;
    const columns = mask.dims[mask.dims.length - 1] ?? 0;
    const first = mask.data.reduce((least, value, at) => (value === 0 ? least : Math.min(least, at % columns)), columns);
    return first < columns ? first : Math.max(columns - 1, 0);
  }

  /** Removes the first `count` columns from the inputs. */
  cut(inputs: Readonly<Record<string, Values>>, count: number): Record<string, Values> {
    return this.each(inputs, this.inputs, (values, axis) => reached(values, axis, -count));
  }

  /** Restores these columns in the outputs, as zeros. */
  putBack(outputs: Readonly<Record<string, Values>>, count: number): Record<string, Values> {
    return this.each(outputs, this.outputs, (values, axis) => reached(values, axis, count));
  }

  private each(
    all: Readonly<Record<string, Values>>,
    along: ReadonlyMap<string, number>,
    change: (values: Values, axis: number) => Values,
  ): Record<string, Values> {
    const changed = (name: string, values: Values): Values => {
      const axis = along.get(name);
      return axis === undefined ? values : change(values, axis);
    };
    return Object.fromEntries(Object.entries(all).map(([name, values]) => [name, changed(name, values)]));
  }
}

/** Adds `more` columns of zeros at the start of an axis, or removes that many if negative. */
function reached(values: Values, axis: number, more: number): Values {
  if (!more) return values;
  const { dims, data } = values;
  const [before, after] = [dims[axis] as number, (dims[axis] as number) + more];
  const inner = dims.slice(axis + 1).reduce((all, size) => all * size, 1);
  const outer = dims.slice(0, axis).reduce((all, size) => all * size, 1);
  const found = new Float32Array(outer * after * inner);
  for (let place = 0; place < outer; place++) {
    const kept = data.subarray((place * before + Math.max(0, -more)) * inner, (place + 1) * before * inner);
    found.set(kept, (place * after + Math.max(0, more)) * inner);
  }
  return { dims: dims.map((size, at) => (at === axis ? after : size)), data: found };
}

function axes(declared: readonly Declared[]): Map<string, number> {
  return new Map(
    declared.flatMap(({ name, shape }) => {
      const axis = shape.indexOf(CLICKS_AXIS);
      return axis < 0 ? [] : [[name, axis] as const];
    }),
  );
}
