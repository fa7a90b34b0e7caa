// A device's contribution to a private count: which articles were displayed to its reader, and which were clicked.
import { NotEligible } from "../../errors";
import type { OneClick } from "../../privacy/accounting/cost_of_sums";
import type { Shapes, UpdateTensor, UpdateTensors } from "../../privacy/private_parameters";
import { WireError, readMessage } from "../../protocol/forms";
import { CLICKED, type CountList, DISPLAYED, MATERIAL, countList } from "../../protocol/popularity";
import { type Draws, permutation } from "../samples";
import type { LocalTask, TaskInputs } from "./task";

const HOUR_MS = 3_600_000;

/**
 * Contributes the displays and clicks of a window, which is spent when the round is paid for. A reader who saw nothing
 * adds zeros and noise, indistinguishable from anything else; so does a device that has meanwhile paid for another
 * count of the same window. The whole window is spent, including what wasn't chosen: a later count covers later
 * displays. Throws NotEligible for an invalid list.
 */
export async function countTask(inputs: TaskInputs): Promise<LocalTask> {
  const listed = await listOf(inputs);
  const uncounted = () => inputs.reading.uncounted(inputs.now, listed.window_hours * HOUR_MS);
  const window = uncounted();
  const { round } = inputs.manifest;
  return {
    shapes: (): Shapes => new Map([DISPLAYED, CLICKED].map((name) => [name, [listed.news.length]])),
    run: async (_params, _samples, _grad, draws) => {
      const tensors = countVector(listed, window.displayed, window.clicked, draws);
      const nonzero = (name: string): number => tensors.get(name)?.values.filter((value) => value !== 0).length ?? 0;
      const paidCount = { round, since: window.since, until: window.until };
      const paid = (): void =>
        inputs.reading.takeCount({ ...paidCount, displayed: nonzero(DISPLAYED), clicked: nonzero(CLICKED) });
      const unchanged = (): boolean => uncounted().since === window.since;
      return { tensors, loss: 0, samples: 1, paid, unchanged };
    },
  };
}

/**
 * Returns a bound on how a count changes when one click and its display move to another article or are left out.
 * There is a joint draw of the two random choices under which `countVector` differs in at most two entries of each
 * tensor, by 1 and by w, so the count moves by at most sqrt(2 (1 + w^2)).
 */
export async function oneClickOf(inputs: TaskInputs): Promise<OneClick> {
  const listed = await listOf(inputs);
  const distance = Math.sqrt(2 * (1 + listed.displayed_unit ** 2));
  return { distance, coordinates: listed.displayed_limit + listed.clicked_limit + 2 };
}

async function listOf(inputs: TaskInputs): Promise<CountList> {
  try {
    return readMessage(countList, await inputs.material(MATERIAL));
  } catch (broken) {
    if (broken instanceof WireError) throw new NotEligible(`its list of articles is malformed: ${broken.message}`);
    throw broken;
  }
}

/**
 * The tensors `displayed` and `clicked`, each [n] in list order: w or 1 where contributed, else 0.
 *
 * If displays or clicks exceed their limits, a uniform random choice of each is contributed, independently of the
 * other. Articles that aren't listed change nothing. Whatever the reader did, the L2 norm of both together is at most
 * the list's, and no entry is negative.
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
