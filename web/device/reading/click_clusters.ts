// Interest clusters of the reader's clicks, and each one's share of them (Uni-FedRec, "Interest Modeling").
import { type Vectors, rowOf } from "../vectors";

/** A merge of two clusters, given by the first row of each, at their average distance. */
interface Merge {
  readonly into: number;
  readonly from: number;
  readonly distance: number;
}

/**
 * Cluster label of every click, 0 .. C-1, by average linkage on Euclidean distance.
 *
 * contexts is [H, D], real clicks only, oldest first. Two clusters merge while their average distance is at most
 * `distance`; if more than `channelsLimit` remain, the same dendrogram is cut where at most that many are left. Channel
 * 0 is the largest cluster; ties go to the one with the older first click. Throws RangeError for an invalid distance or
 * limit.
 */
export function averageLinkage(contexts: Vectors, distance: number, channelsLimit: number): number[] {
  if (!(distance > 0)) throw new RangeError(`distance: must be above 0, got ${distance}`);
  if (channelsLimit < 1) throw new RangeError(`channelsLimit: must be at least 1, got ${channelsLimit}`);
  const count = contexts.rows;
  if (count < 2) return Array<number>(count).fill(0);
  const merges = dendrogram(contexts);
  let edge = distance;
  if (count - merges.filter((each) => each.distance <= edge).length > channelsLimit)
    // Average linkage merges at non-decreasing distances, so the number of merges gives the number of clusters; ties
    // leave fewer.
    edge = merges.map((each) => each.distance).sort((one, other) => one - other)[count - channelsLimit - 1] as number;
  const cluster = Array.from({ length: count }, (_, at) => at);
  for (const { into, from, distance: apart } of merges)
    if (apart <= edge) cluster.forEach((label, at) => label === from && (cluster[at] = into));
  return largestFirst(cluster);
}

/** The H - 1 merges in order, the nearest each time (the Lance-Williams update for averages). */
function dendrogram(contexts: Vectors): Merge[] {
  const count = contexts.rows;
  const apart = Array.from({ length: count }, () => Array<number>(count).fill(0));
  for (let one = 0; one < count; one++)
    for (let other = one + 1; other < count; other++)
      at(apart, one)[other] = at(apart, other)[one] = distanceOf(rowOf(contexts, one), rowOf(contexts, other));
  const size = Array<number>(count).fill(1);
  const left = Array.from({ length: count }, (_, at) => at);
  const merges: Merge[] = [];
  while (left.length > 1) {
    let best: Merge = { into: 0, from: 0, distance: Infinity };
    for (let a = 0; a < left.length; a++)
      for (let b = a + 1; b < left.length; b++) {
        const [into, from] = [left[a] as number, left[b] as number];
        const found = at(apart, into)[from] as number;
        if (found < best.distance) best = { into, from, distance: found };
      }
    const { into, from } = best;
    merges.push(best);
    left.splice(left.indexOf(from), 1);
    const [many, more] = [size[into] as number, size[from] as number];
    for (const other of left) {
      if (other === into) continue;
      const found = (many * (at(apart, into)[other] as number) + more * (at(apart, from)[other] as number)) / (many + more);
      at(apart, into)[other] = at(apart, other)[into] = found;
    }
    size[into] = many + more;
  }
  return merges;
}

function at(table: number[][], place: number): number[] {
  return table[place] as number[];
}

function distanceOf(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let axis = 0; axis < one.length; axis++) sum += ((one[axis] as number) - (other[axis] as number)) ** 2;
  return Math.sqrt(sum);
}

/** Renumbers clusters by size, largest first, then by first click, oldest first. */
function largestFirst(cluster: readonly number[]): number[] {
  const sizes = new Map<number, number>();
  for (const label of cluster) sizes.set(label, (sizes.get(label) ?? 0) + 1); // in the order of first clicks
  const ranked = [...sizes].sort(([, one], [, other]) => other - one);
  const rank = new Map(ranked.map(([label], place) => [label, place]));
  return cluster.map((label) => rank.get(label) as number);
}

/** |H_c|: number of clicks of each channel, channel 0 first. Empty without clicks. */
export function counts(labels: readonly number[]): number[] {
  const found = Array<number>(Math.max(-1, ...labels) + 1).fill(0);
  for (const label of labels) found[label] = (found[label] ?? 0) + 1;
  return found;
}
