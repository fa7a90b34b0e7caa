// A ranker's gradient on one reader's clicks: what a device uploads in FedSGD (FedNewsRec, eq. 2 as a mean).
import type { Samples, Wanted } from "../samples";
import { type LocalTask, type TaskInputs, gradientShapes, pooledGradient } from "./task";

/**
 * dL_u/dw of every parameter, for the mean loss over the reader's samples, which are drawn afresh. Fits every ranker
 * whose gradient graph takes clicks, click_mask and candidates, and features where it has them: the architecture is the
 * graph's matter alone.
 */
export async function fullGradientTask(given: TaskInputs): Promise<LocalTask> {
  const wanted = rankerSamples(given);
  return {
    shapes: gradientShapes,
    run: async (params, samples, grad, draws) => {
      const drawn = samples.draw(wanted, draws);
      return pooledGradient(drawn.count, rankerBatch(drawn), params, grad);
    },
  };
}

/** What a ranker's graph takes of a reader in this round. */
export function rankerSamples({ release, manifest }: TaskInputs): Wanted {
  const entry = release.manifest.models.get(manifest.model ?? "");
  return { negatives: manifest.negatives, limit: manifest.samples_limit, features: entry?.features ?? [] };
}

/** The inputs of a ranker's graph for some of the samples. */
export function rankerBatch(samples: Samples): (start: number, end: number) => ReturnType<Samples["batch"]> {
  return (start, end) => samples.batch(start, end);
}
