// Recall: a device's report of interests, and the candidates it receives.
//
// The browser's device makes two kinds of report, `code` and `none`; it reads the others so that what another device
// has logged or exported can be shown.
import {
  absent,
  bytes,
  integer,
  list,
  literal,
  oneOf,
  optional,
  real,
  record,
  text,
  WireError,
  type ValueOf,
} from "./forms";
import { distinct, releaseId, shortRelease } from "./ids";
import { newsCard } from "./news";

export const CHANNELS_LIMIT = 5;
export const BASIS_LIMIT = 512;
export const CANDIDATES_LIMIT = 1_000;
export const CLICKS_LIMIT = 50;
export const CODEBOOK_LIMIT = 1_024;

const score = real({ min: -1e4, max: 1e4 });
const scores = list(list(score), { min: 1, max: CHANNELS_LIMIT });
const codebook = integer({ min: 2, max: CODEBOOK_LIMIT });
const code = integer({ min: 0, max: CODEBOOK_LIMIT - 1 });
const kind = <const K extends string>(name: K) => optional(literal(name), name);

function checkWidths(channels: readonly (readonly number[])[]): void {
  const width = channels[0]?.length ?? 0;
  if (width < 1 || width > BASIS_LIMIT || channels.some((each) => each.length !== width))
    throw new WireError(`every channel of scores needs the same width, 1 to ${BASIS_LIMIT}`);
}

/** Uni-FedRec's report: B noisy scores per interest channel, and the number of clicks in each channel. */
export const basisLaplaceReport = record(
  {
    kind: kind("basis_laplace"),
    scores,
    counts: list(integer({ min: 1, max: CLICKS_LIMIT }), { min: 1, max: CHANNELS_LIMIT }),
  },
  (report) => {
    if (report.counts.length !== report.scores.length)
      throw new WireError(`counts has ${report.counts.length} entries for ${report.scores.length} channels of scores`);
    checkWidths(report.scores);
  },
);

/** Uni-FedRec's report without its privacy gaps: always the same number of channels, and noisy shares. */
export const basisL1Report = record(
  { kind: kind("basis_l1"), scores, shares: optional(list(score, { max: CHANNELS_LIMIT }), []) },
  (report) => {
    if (report.shares.length && report.shares.length !== report.scores.length)
      throw new WireError(`shares has ${report.shares.length} entries for ${report.scores.length} channels of scores`);
    checkWidths(report.scores);
  },
);

/** One number: the nearest of K prototypes, or another by randomised response. */
export const codeReport = record({ kind: kind("code"), codebook, code }, (report) => {
  if (report.code >= report.codebook)
    throw new WireError(`code ${report.code} is not in a codebook of ${report.codebook}`);
});
export type CodeReport = ValueOf<typeof codeReport>;

/** One merged topic histogram with noise. */
export const topicsReport = record(
  {
    kind: kind("topics"),
    codebook: integer({ min: 2, max: BASIS_LIMIT }),
    weights: list(score, { min: 2, max: BASIS_LIMIT }),
  },
  (report) => {
    if (report.weights.length !== report.codebook)
      throw new WireError(`weights has ${report.weights.length} entries for a codebook of ${report.codebook}`);
  },
);

/** A random set of topics, in ascending order, that is more likely to contain the reader's topic. */
export const subsetReport = record(
  { kind: kind("subset"), codebook, topics: list(code, { min: 1, max: CODEBOOK_LIMIT }) },
  ({ codebook: size, topics }) => {
    if (!distinct(topics) || topics.some((topic, place) => place > 0 && topic < (topics[place - 1] ?? 0)))
      throw new WireError("topics must be distinct and ascending");
    if ((topics[topics.length - 1] ?? 0) >= size || topics.length >= size)
      throw new WireError(`topics must be fewer than the codebook's ${size} and within it`);
  },
);

/** Nothing about the reader: answered with the default list, the same for every device. */
export const noReport = record({ kind: kind("none") });

export const report = oneOf({
  basis_laplace: basisLaplaceReport,
  basis_l1: basisL1Report,
  code: codeReport,
  topics: topicsReport,
  subset: subsetReport,
  none: noReport,
});
export type Report = ValueOf<typeof report>;

/** POST /v1/recall. Of the server's choices it repeats only the release modulo 16 and the codebook's size. */
export const recallRequest = record({
  release: shortRelease,
  limit: optional(integer({ min: 1, max: CANDIDATES_LIMIT }), 400),
  report,
});
export type RecallRequest = ValueOf<typeof recallRequest>;

/** Candidates in merge order; vectors: one safetensors blob with `codes` int8 [R, D] and `scales` float32 [R]. */
export const recallAnswer = record({
  release: releaseId,
  encoder: text({ max: 80 }),
  candidates: list(newsCard),
  vectors: bytes(),
});
export type RecallAnswer = ValueOf<typeof recallAnswer>;

/**
 * GET /v1/news/front: the default list. order: null for the whole list; otherwise the list, each article by its place
 * in the earlier list followed by `candidates`, which are then only the new or changed articles.
 */
export const defaultListAnswer = record({
  ...recallAnswer.fields,
  order: absent(list(integer({ min: 0, max: 2 * CANDIDATES_LIMIT - 1 }), { max: CANDIDATES_LIMIT })),
});
export type DefaultListAnswer = ValueOf<typeof defaultListAnswer>;

/**
 * The ids of the list in order; earlier: those of the list that the device has. Throws WireError for a place that
 * neither list has, and for an article listed twice.
 */
export function listed({ candidates, order }: DefaultListAnswer, earlier: readonly string[]): string[] {
  const ids = candidates.map((card) => card.id);
  if (!order) return ids;
  const both = [...earlier, ...ids];
  const last = Math.max(-1, ...order);
  if (last >= both.length) throw new WireError(`places 0 to ${both.length - 1}, got ${last}`).within("order");
  const found = order.map((place) => both[place]!);
  if (new Set(found).size < found.length) throw new WireError("lists an article twice").within("order");
  return found;
}
