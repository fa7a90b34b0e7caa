// Evaluates a release's ranker, beside its predecessor, on samples that this device never used for gradients.
import { NotEligible } from "../../errors";
import type { Shapes, UpdateTensor } from "../../privacy/private_parameters";
import { ofView } from "../../ranking/views_ranker";
import { TensorError, type TensorSpec, unpack } from "../../protocol/tensors";
import { type Params, paramsOf } from "../gradients";
import { rankerSamples } from "./full_gradient";
import { type LocalTask, type TaskInputs, slicesOf } from "./task";

/** Name of the round's data with the previous weights. */
const BEFORE = "before";
/** Each device's gain is clipped to this: a mean of bounded gains can't fake a large drop. */
const GAIN_LIMIT = 0.03;
/** Weight of level and square relative to gain: they decide nothing alone, so they get less of the vector's length. */
const DETAIL_WEIGHT = 0.25;
const SHAPES: Shapes = new Map(["gain", "level", "square"].map((name) => [name, [1]]));

/**
 * The mean AUC of held-out clicks against unclicked articles of the same feeds, under both weights and on the same
 * draws. A device without held-out clicks contributes zeros. Throws NotEligible if the predecessor's weights don't fit
 * the ranker.
 */
export async function evaluateTask(inputs: TaskInputs): Promise<LocalTask> {
  const model = inputs.manifest.model ?? "";
  const weights = paramsOf(await inputs.release.weights(model));
  const before = await predecessor(inputs, weights);
  const score = await inputs.graph(model, "score");
  const wanted = rankerSamples(inputs);
  return {
    shapes: () => SHAPES,
    run: async (params, samples, _grad, draws) => {
      const drawn = samples.draw(wanted, draws);
      const auc = async (under: Params): Promise<number> => {
        let sum = 0;
        for (const [start, end] of slicesOf(drawn.count)) {
          const scores = (await score.run(under, drawn.batch(start, end))).get("scores");
          if (!scores) throw new RangeError("evaluate: the graph returns no scores");
          sum += (end - start) * meanAuc(scores.values, scores.values.length / (end - start));
        }
        return sum / drawn.count;
      };
      // for a multi-view ranker the reading view, which these samples are from; otherwise unchanged
      const [now, then] = [ofView(params, "reading"), ofView(before, "reading")];
      return { tensors: written(await auc(now), await auc(then)), loss: 0, samples: drawn.count };
    },
  };
}

/** scores [n, width], the clicked article first: the mean share of the others that score lower, ties counting half. */
export function meanAuc(scores: Float32Array, width: number): number {
  let sum = 0;
  for (let row = 0; row < scores.length; row += width) {
    const clicked = scores[row] ?? NaN;
    for (const other of scores.subarray(row + 1, row + width))
      sum += clicked > other ? 1 : clicked === other ? 0.5 : 0;
  }
  return sum / ((scores.length / width) * (width - 1));
}

/** Returns one device's evaluation as tensors by name. */
function written(now: number, before: number): ReadonlyMap<string, UpdateTensor> {
  const gain = Math.max(-1, Math.min(1, (now - before) / GAIN_LIMIT));
  const numbers = { gain, level: DETAIL_WEIGHT * (2 * now - 1), square: DETAIL_WEIGHT * gain ** 2 };
  return new Map(
    Object.entries(numbers).map(([name, each]) => [name, { shape: [1], values: Float32Array.of(each) }]),
  );
}

async function predecessor(inputs: TaskInputs, weights: Params): Promise<Params> {
  const specs = [...weights].map(([name, { shape }]): [string, TensorSpec] => [name, { dtype: "float32", shape }]);
  const content = await inputs.material(BEFORE);
  try {
    return paramsOf(Object.entries(unpack(content, Object.fromEntries(specs), content.length)));
  } catch (broken) {
    if (broken instanceof TensorError)
      throw new NotEligible(`the predecessor's weights do not fit: ${broken.message}.`);
    throw broken;
  }
}
