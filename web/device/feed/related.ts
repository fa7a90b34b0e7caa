// The nearest news to a story: of the default list and the last answer, one a story, none ruled out.
import type { Parts } from "../parts";
import { bestFirst, noVectors, products, rowOf, unit } from "../vectors";
import type { NewsCard } from "../wire/news";
import { allowed, oneOfEach } from "./exclusions";
import { Kinship, floorOf } from "./kinship";
import { namesIn } from "./preference_reader";
import { byKind } from "./preferences";

const RELATED = 4;
/** News that are looked at for those, nearest first. */
const LOOKED_AT = 60;

/** Only what is close enough to say so: of some news nothing is related, and of all before the first release. */
export function related({ serving, stores }: Parts, newsId: string): NewsCard[] {
  const manifest = serving.manifest();
  if (!manifest) return [];
  const { present, vectors } = stores.news.vectors([newsId], manifest.encoder);
  if (!present[0]) return [];
  const { defaultList: held, recall } = serving.context;
  const defaultList = held.candidates(manifest.encoder, manifest.dimensions);
  const known = recall.known(defaultList);
  const kinship = new Kinship(known, floorOf(manifest, defaultList));
  const none = noVectors(manifest.dimensions);
  const near = known.where(
    allowed(known, {
      clicks: [],
      clickVectors: none,
      clickInterests: [],
      likedCards: [],
      liked: none,
      disliked: none,
      opened: new Set([newsId]),
      dislikedIds: new Set(stores.feedback.reactions("less").map((one) => one.newsId)),
      unwanted: [],
      followed: byKind([]),
      blocked: namesIn(stores.stances.blocked()),
      chosenSections: new Set(),
      muted: [],
    }),
  );
  const scores = products(unit(near.vectors), rowOf(unit(vectors), 0));
  const best = bestFirst(scores).slice(0, LOOKED_AT);
  const nearest = near.only(best);
  const single = nearest.where(oneOfEach(nearest, best.map((row) => scores[row] ?? 0)));
  const kin = kinship.of(stores.news.card(newsId), rowOf(vectors, 0), single.cards, single.vectors);
  return kin.slice(0, RELATED).flatMap(({ row }) => single.cards[row] ?? []);
}
