// A device's part of FINDING's clustering by sums (section 4.2): its vector in its nearest group's row and its move.
import { NotEligible } from "../../errors";
import type { Shapes } from "../../privacy/private_parameters";
import { chosenGroups, mark, zerosOf } from "./group_gradient";
import type { LocalTask, TaskInputs } from "./task";

const [VECTORS, MOVES] = ["vectors", "moves"];
/** Of the clip, for each of the two tensors: their vector together has a length of at most sqrt(2) / 2 of it. */
const SHARE = 0.5;

/**
 * `vectors` [K, D]: half the clip times the reader's unit vector in the row of its next group; `moves` [K, K]: half the
 * clip where its group in force meets the next. Throws NotEligible as `groupGradientTask`.
 */
export async function nearestGroupTask(given: TaskInputs): Promise<LocalTask> {
  const { protection, groups, choice } = await chosenGroups(given);
  const { encoder, dimensions } = given.release.manifest;
  const clicks = given.reading.clicked(encoder);
  const { size } = groups;
  const shapes: Shapes = new Map([
    [VECTORS, [size, dimensions]],
    [MOVES, [size, size]],
  ]);
  const share = SHARE * protection.clip;
  return {
    shapes: () => shapes,
    run: async () => {
      if (!clicks.rows) throw new NotEligible("there are no clicks by which a group could be found.");
      const { group, vector } = await choice.drafted(clicks);
      const tensors = zerosOf(shapes);
      tensors.get(VECTORS)?.values.set(vector.map((each) => Math.fround(share) * each), group * dimensions);
      mark(tensors, MOVES, (await choice.inForce(clicks)) * size + group, share);
      return { tensors, loss: 0, samples: 1 };
    },
  };
}
