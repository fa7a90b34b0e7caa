// From clicks to interest clusters, before any protection (Uni-FedRec). The browser's device doesn't report the
// release's basis, so the graph `decompose` is loaded only to check a release and never run.
import { type GraphSession, usable } from "../ranking/session";
import { leftPadded } from "../ranking/padding";
import { type Vectors, noVectors } from "../vectors";
import { CLICKS_LIMIT } from "../protocol/recall";
import type { RecallProtocol } from "../protocol/releases";
import { averageLinkage } from "./click_clusters";

/** The device's half of the recall model: context vectors, and their clusters. */
export class RecallModel {
  constructor(
    private readonly context: GraphSession,
    readonly protocol: RecallProtocol,
  ) {}

  /**
   * g = MHSA(h): clicks [H, D], oldest first -> [H', D] for the newest H' = min(H, 50). If the release's graph gives no
   * usable result, the clicks are their own contexts.
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
