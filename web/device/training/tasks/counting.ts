// What a device adds to a private count: which news were displayed to its reader, and which were clicked.
import { NotEligible } from "../../errors";
import type { OneClick } from "../../privacy/prices";
import type { Shapes, UpdateTensor, UpdateTensors } from "../../privacy/private_parameters";
import { WireError, readMessage } from "../../wire/forms";
import { CLICKED, type CountList, DISPLAYED, MATERIAL, countList } from "../../wire/popularity";
import { type Draws, permutation } from "../samples";
import type { LocalTask, TaskInputs } from "./task";

const HOUR_MS = 3_600_000;

/**
 * Contributes the displays and clicks of a window, which is spent when the round is paid for. A reader who saw nothing
 * adds zeros and noise, which can't be told from anything else. The window is spent whole, also what wasn't chosen: a
 * later count is about later displays. Throws NotEligible for a list that is none.
 */
export async function countTask(given: TaskInputs): Promise<LocalTask> {
  const listed = await listOf(given);
  const window = given.reading.uncounted(given.now, listed.window_hours * HOUR_MS);
  const { round } = given.manifest;
  return {
    shapes: (): Shapes => new Map([DISPLAYED, CLICKED].map((name) => [name, [listed.news.length]])),
    run: async (_params, _samples, _grad, draws) => {
      const tensors = countVector(listed, window.displayed, window.clicked, draws);
      const nonzero = (name: string): number => tensors.get(name)?.values.filter((value) => value !== 0).length ?? 0;
      const taken = { round, since: window.since, until: window.until };
      const paid = (): void =>
        given.reading.takeCount({ ...taken, displayed: nonzero(DISPLAYED), clicked: nonzero(CLICKED) });
      return { tensors, loss: 0, samples: 1, paid };
    },
  };
}

/**
 * What one click and its display, exchanged for those of another piece of news or left out, do to a count: under a joint
 * draw of the two random choices `countVector` differs in at most two entries of each tensor, by 1 and by w, so that it
 * moves by sqrt(2 (1 + w^2)) at most.
 */
export async function oneClickOf(given: TaskInputs): Promise<OneClick> {
  const listed = await listOf(given);
  const distance = Math.sqrt(2 * (1 + listed.displayed_unit ** 2));
  return { distance, coordinates: listed.displayed_limit + listed.clicked_limit + 2 };
}

async function listOf(given: TaskInputs): Promise<CountList> {
  try {
    return readMessage(countList, await given.material(MATERIAL));
  } catch (broken) {
    if (broken instanceof WireError) throw new NotEligible(`its list of news is malformed: ${broken.message}`);
    throw broken;
  }
}

/**
 * The tensors `displayed` and `clicked`, each [n] in the order of the list: w or 1 at what is contributed, else 0.
 *
 * Of more displays than the limit, or clicks than theirs, a random choice is contributed, each with the same chance and
 * without regard to the other. News that aren't listed change nothing. Whatever the reader did, the L2 norm of both
 * together is at most the list's, and no entry is negative.
 */
export function countVector(
  listed: CountList,
  displayed: ReadonlySet<string>,
  clicked: ReadonlySet<string>,
  draws: Draws,
): UpdateTensors {
  const entries = (news: ReadonlySet<string>, limit: number, unit: number): UpdateTensor => {
    const rows = listed.news.flatMap((newsId, row) => (news.has(newsId) ? [row] : []));
    const values = new Float32Array(listed.news.length);
    for (const place of permutation(draws, rows.length).slice(0, limit)) values[rows[place] ?? -1] = unit;
    return { shape: [values.length], values };
  };
  return new Map([
    [DISPLAYED, entries(displayed, listed.displayed_limit, listed.displayed_unit)],
    [CLICKED, entries(clicked, listed.clicked_limit, 1)],
  ]);
}
