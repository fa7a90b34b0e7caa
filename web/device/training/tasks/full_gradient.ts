// A ranker's gradient on one reader's clicks: what a device uploads in FedSGD (FedNewsRec, eq. 2 as a mean).
import type { Samples, Wanted } from "../samples";
import { type LocalTask, type TaskInputs, gradientShapes, pooledGradient } from "./task";

/**
 * dL_u/dw of every parameter, for the mean loss over newly drawn samples of the reader. Works for every ranker whose
 * gradient graph takes clicks, click_mask and candidates, and optionally features, whatever its architecture.
 */
export async function fullGradientTask(inputs: TaskInputs): Promise<LocalTask> {
  const wanted = rankerSamples(inputs);
  return {
    shapes: gradientShapes,
    run: async (params, samples, grad, draws) => {
      const drawn = samples.draw(wanted, draws);
      return pooledGradient(drawn.count, rankerBatch(drawn), params, grad);
    },
  };
}

/** The samples that a ranker's graph needs in this round. */
export function rankerSamples({ release, manifest }: TaskInputs): Wanted {
  const entry = release.manifest.models.get(manifest.model ?? "");
  return { negatives: manifest.negatives, limit: manifest.samples_limit, features: entry?.features ?? [] };
}

/** Returns a function that makes a ranker graph's inputs for a slice of the samples. */
export function rankerBatch(samples: Samples): (start: number, end: number) => ReturnType<Samples["batch"]> {
  return (start, end) => samples.batch(start, end);
}
