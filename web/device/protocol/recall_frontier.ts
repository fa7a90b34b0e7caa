// Measurements of candidate lists by pool size, and the rule that chooses a list for a pool and epsilon: the figures
// and rule of protocol/recall_frontier.py. Between two measured sizes, figures are interpolated linearly in the
// logarithm of the size; beyond them the nearest is used. A list as long as the pool holds all of it.
import figures from "../../../protocol/recall_frontier.json";

/** Recall points given up for less epsilon or fewer bytes: less than 0.5, which is the error of the figures. */
export const SLACK = 0.3;
/** Default list length. */
export const USUAL_PLACES = 400;
const EVERYTHING = 100;

interface MeasuredList {
  readonly mode: string;
  readonly places: number;
  readonly epsilon: number;
  readonly found: readonly number[];
  readonly weight: readonly number[];
  readonly codebook?: number | null;
}

const PACKAGED = figures as { readonly pools: readonly number[]; readonly lists: readonly MeasuredList[] };

/** The chosen list, with its figures for the pool. */
export interface ListChoice {
  readonly news: number;
  readonly mode: string;
  readonly codebook: number | null;
  readonly places: number;
  readonly epsilon: number;
  readonly weight: number;
  readonly found: number;
  readonly silent: number;
  readonly best: number;
}

/** What the choice depends on, none of it derived from clicks. codebooks: (K, epsilon) of the release's codebooks. */
export interface ChoiceTerms {
  readonly epsilonLimit: number;
  readonly bytesLimit: number;
  readonly codebooks: readonly (readonly [number, number])[];
  readonly poolCodes: boolean;
}

/**
 * Chooses the list for a pool: among those with nearly the best recall, the one that reveals least, then the smallest.
 * If none is small enough, the smallest that reveals nothing.
 */
export function chooseList(news: number, { epsilonLimit, bytesLimit, codebooks, poolCodes }: ChoiceTerms): ListChoice {
  const weight = (each: MeasuredList): number => at(each.weight, news);
  const found = (each: MeasuredList): number => (each.places >= news ? EVERYTHING : at(each.found, news));
  const silent = PACKAGED.lists.filter((each) => !each.epsilon && (each.mode !== "broadcast" || poolCodes));
  const reporting = PACKAGED.lists.filter(
    ({ epsilon, codebook }) =>
      epsilon > 0 && epsilon <= epsilonLimit && codebooks.some(([size, price]) => size === codebook && price === epsilon),
  );
  const allowed = [...silent, ...reporting].filter((each) => weight(each) <= bytesLimit);
  if (!silent.some((each) => allowed.includes(each)))
    allowed.push(silent.reduce((least, each) => (weight(each) < weight(least) ? each : least)));
  const best = Math.max(...allowed.map(found));
  const [chosen] = allowed
    .filter((each) => found(each) >= best - SLACK)
    .sort((one, other) => one.epsilon - other.epsilon || weight(one) - weight(other) || one.places - other.places);
  if (!chosen) throw new RangeError("the frontier contains no list that reveals nothing");
  return {
    news,
    mode: chosen.mode,
    codebook: chosen.codebook ?? null,
    places: chosen.places,
    epsilon: chosen.epsilon,
    weight: weight(chosen),
    found: found(chosen),
    silent: Math.max(...allowed.filter((each) => !each.epsilon).map(found)),
    best,
  };
}

/**
 * Returns the value of a report for a pool of this many articles; null if not measured.
 * It consists of the points gained over the default list of the usual length, the longest list's length, and the points
 * that this length gains every device over the usual one.
 */
export function gainOf(
  mode: string,
  codebook: number,
  epsilon: number,
  news: number,
): { gain: number; places: number; longer: number } | null {
  const silent = PACKAGED.lists.filter((each) => each.mode === "none");
  const plain = silent.find(({ places }) => places === USUAL_PLACES);
  const mine = PACKAGED.lists.find(
    (each) => each.mode === mode && each.codebook === codebook && each.epsilon === epsilon && each.places === USUAL_PLACES,
  );
  if (!mine || !plain) return null;
  const longest = silent.reduce((most, each) => (each.places > most.places ? each : most));
  const usual = at(plain.found, news);
  return { gain: at(mine.found, news) - usual, places: longest.places, longer: at(longest.found, news) - usual };
}

/** One of a list's figures for a pool of this many articles. */
function at(measured: readonly number[], news: number): number {
  const { pools } = PACKAGED;
  const next = pools.findIndex((size) => news <= size);
  if (next === 0) return measured[0] as number;
  if (next < 0) return measured[measured.length - 1] as number;
  const [low, high] = [pools[next - 1] as number, pools[next] as number];
  const share = Math.log(news / low) / Math.log(high / low);
  const before = measured[next - 1] as number;
  return before + share * ((measured[next] as number) - before);
}
