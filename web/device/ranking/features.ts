// What a ranker may know of a candidate besides its vector, computed on the device from the reader's own data.
import type { Values } from "./padding";

/**
 * R candidates beside the reader's H clicks. Sensitive: it never leaves the device. sections and topics are [R],
 * clickedSections and clickedTopics [H]; recency [R] is 1 for news of this moment and halves with every half-life;
 * popularity [R] is from -1 to 1: 0 where nothing is known.
 */
export interface FeatureContext {
  readonly sections: readonly string[];
  readonly topics: readonly string[];
  readonly clickedSections: readonly string[];
  readonly clickedTopics: readonly string[];
  readonly recency: Float64Array;
  readonly popularity: Float64Array;
}

/** [R]: the share of the clicks that have the candidate's name; zeros without clicks. */
export function shareOfClicks(column: readonly string[], clicked: readonly string[]): Float64Array {
  const counts = new Map<string, number>();
  for (const name of clicked) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Float64Array.from(column, (name) => (counts.get(name) ?? 0) / Math.max(1, clicked.length));
}

/** Every feature this program computes, by the name that a release's model gives it; each [R], within -1 to 1. */
export const FEATURES: ReadonlyMap<string, (seen: FeatureContext) => Float64Array> = new Map([
  ["section_affinity", (seen: FeatureContext) => shareOfClicks(seen.sections, seen.clickedSections)],
  ["topic_affinity", (seen: FeatureContext) => shareOfClicks(seen.topics, seen.clickedTopics)],
  ["popularity", (seen: FeatureContext) => seen.popularity],
  ["recency", (seen: FeatureContext) => seen.recency],
]);

/** [1, R, F], one column for each of `names`, in order. Throws RangeError for a name that is none of FEATURES. */
export function featureColumns(names: readonly string[], context: FeatureContext): Values {
  const columns = names.map((name) => {
    const feature = FEATURES.get(name);
    if (!feature) throw new RangeError(`feature ${name}: this program does not compute it`);
    return feature(context);
  });
  const [rows, width] = [context.sections.length, names.length];
  const data = new Float32Array(rows * width);
  columns.forEach((column, at) => column.forEach((value, row) => (data[row * width + at] = value)));
  return { dims: [1, rows, width], data };
}
