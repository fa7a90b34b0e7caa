// From clicks to interest clusters, and their scores on basic interests, before any protection (Uni-FedRec). The basic
// interests are the prototypes of the release's codebook. The browser's device doesn't report the release's basis, so
// the graph `decompose` is loaded only to check a release and never run.
import { type GraphSession, usable } from "../ranking/session";
import { leftPadded } from "../ranking/padding";
import { type Vectors, noVectors, rowOf } from "../vectors";
import { CLICKS_LIMIT } from "../protocol/recall";
import type { RecallProtocol } from "../protocol/releases";
import { averageLinkage } from "./click_clusters";

const GRID_BITS = 40;

/**
 * <sum of the channel's clicks, prototype> for every channel: scores [C][K]. labels [H]: the channel of each click.
 *
 * Inner products are rounded to a grid on which additions are exact, so the total over channels, from which a report is
 * made, doesn't depend on how a release clusters the clicks. Throws RangeError for vectors that don't fit together
 * or aren't finite.
 */
export function onPrototypes(prototypes: Vectors, clicks: Vectors, labels: readonly number[]): number[][] {
  if (prototypes.width !== clicks.width || labels.length !== clicks.rows)
    throw new RangeError(`clicks have ${clicks.width} numbers, prototypes ${prototypes.width}; ${labels.length} labels`);
  const products = labels.map((_, at) => productsWith(prototypes, rowOf(clicks, at)));
  if (!products.every((row) => row.every(Number.isFinite)))
    throw new RangeError("clicks have values that are not finite: nothing is released");
  const peak = products.reduce((most, row) => row.reduce((so, each) => Math.max(so, Math.abs(each)), most), 0);
  const grid = 2 ** ((peak > 0 ? Math.floor(Math.log2(peak)) + 1 : 0) - GRID_BITS);
  const scores = Array.from({ length: Math.max(-1, ...labels) + 1 }, () => Array<number>(prototypes.rows).fill(0));
  products.forEach((row, at) => {
    const mine = scores[labels[at] as number] as number[];
    row.forEach((each, k) => (mine[k] = (mine[k] as number) + Math.round(each / grid) * grid));
  });
  return scores;
}

/** The inner product of a vector with every prototype, in doubles. */
export function productsWith(prototypes: Vectors, one: Float32Array): number[] {
  return Array.from({ length: prototypes.rows }, (_, k) =>
    rowOf(prototypes, k).reduce((sum, value, axis) => sum + value * (one[axis] as number), 0),
  );
}

/** The device's half of the recall model: context vectors, and their clusters. */
export class RecallModel {
  constructor(
    private readonly context: GraphSession,
    readonly protocol: RecallProtocol,
  ) {}

  /**
   * g = MHSA(h): clicks [H, D], oldest first -> [H', D] for the newest H' = min(H, 50). If the release's graph returns
   * no usable result, the clicks are their own contexts.
   */
  async contexts(clicks: Vectors): Promise<Vectors> {
    const kept = Math.min(clicks.rows, CLICKS_LIMIT);
    if (!kept) return noVectors(clicks.width);
    const padded = leftPadded(clicks);
    const compute = async (): Promise<Float32Array> =>
      (await this.context.run({ clicks: padded.clicks, click_mask: padded.mask }))["contexts"]?.data ?? new Float32Array(0);
    const whole = await usable(compute, padded.clicks.data, "contexts of clicks");
    return { data: whole.slice((CLICKS_LIMIT - kept) * clicks.width), rows: kept, width: clicks.width };
  }

  /** The channel of every click, by the release's distance and channel limit. */
  clusters(contexts: Vectors): number[] {
    return averageLinkage(contexts, this.protocol.cluster_distance, this.protocol.channels_limit);
  }
}
