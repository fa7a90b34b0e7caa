// Explains in one sentence why a story is in the feed, from the terms of its own score.
import whys from "../../../device_app/feed/whys.toml";
import { TextCatalogue } from "../protocol/text_catalogue";
import { rowOf } from "../vectors";
import type { NewsCard } from "../protocol/news";
import type { Candidates } from "./candidates";
import type { Reason } from "./item";
import type { SimilarStory, SimilarityRule } from "./similarity";
import type { SlottedRow } from "./page_order";
import { type Named, type UserPreferences, anyOf } from "./preference_reader";
import type { ScoreTerms, TermName } from "./scores";
import { tally } from "./exploration";

const CLICKS_NAMED = 3;
/** Minimum number of stories read on a topic or in a section for a reason to state the count. */
const READ_OFTEN = 2;

/** The sentences shown to readers, by reason. */
const WHYS = new TextCatalogue(whys);

type Lifts = Readonly<Record<TermName, number>>;
type Nameable = "read" | "section" | "liked" | "following" | "chosen" | "popular" | "rare" | "editors";

/** The number of stories recently opened, each once, per topic and per section. */
interface Read {
  readonly topics: ReadonlyMap<string, number>;
  readonly sections: ReadonlyMap<string, number>;
}

const topicOf = (card: NewsCard): string => JSON.stringify([card.section, card.topic]);

/**
 * Returns one reason for each place of the page, in order.
 * For a personal slot, it is the term that raised the story's score furthest above the mean, among terms that can be
 * named. Similarity to what was read or liked is named only if the articles are close enough (similarity.ts). If no
 * such term raises a story, the reason says whether it is recent or its editors rated it above the mean; otherwise it
 * is empty, since nothing specific to this story or reader can be said. recent [n]: whether each was published in the
 * last `fresh_hours`.
 */
export function reasons(
  candidates: Candidates,
  page: readonly SlottedRow[],
  preferences: UserPreferences,
  score: ScoreTerms,
  similarity: SimilarityRule,
  recent: readonly boolean[],
): Reason[] {
  const { clicks } = preferences;
  const opened = [...new Map(clicks.map((card) => [card.id, card])).values()];
  const read: Read = { topics: tally(opened.map(topicOf)), sections: tally(opened.map((card) => card.section)) };
  const cardOf = (place: SlottedRow): NewsCard => candidates.cards[place.row] as NewsCard;
  const stories = tally(page.filter((place) => place.slot === "developing").map((place) => cardOf(place).story));
  return page.map((place) => {
    const card = cardOf(place);
    if (place.slot === "developing")
      return reason("developing", WHYS.say("developing", { reports: stories.get(card.story) }));
    if (place.slot === "fresh") return reason("recent", WHYS.say("fresh"));
    if (place.slot === "explore") {
      const rare = clicks.length > 0 && (read.sections.get(card.section) ?? 0) <= READ_OFTEN;
      return reason("explore", WHYS.say(rare ? "outside" : "drawn", { section: card.section }));
    }
    return personal(candidates, place.row, preferences, read, score, similarity, recent[place.row] ?? false);
  });
}

function reason(kind: Reason["kind"], words: string, more: Partial<Reason> = {}): Reason {
  return { interest: null, clicks: [], ...more, kind, words };
}

function personal(
  candidates: Candidates,
  row: number,
  preferences: UserPreferences,
  read: Read,
  score: ScoreTerms,
  similarity: SimilarityRule,
  isRecent: boolean,
): Reason {
  const lifts = score.lifts(row);
  const weights = weightsOf(lifts).sort(([, one], [, other]) => other - one);
  for (const [what, weight] of weights) {
    if (weight <= 0 || what === "editors") break;
    const found = namedReason(what, candidates, row, preferences, read, similarity);
    if (found) return found;
  }
  return editors(lifts, preferences, isRecent);
}

/** Possible reasons with their lift; terms that a reader would consider the same are added up. */
function weightsOf(lifts: Lifts): [Nameable, number][] {
  return [
    ["read", lifts.content + lifts.topic_affinity],
    ["section", lifts.section_affinity],
    ["liked", lifts.reactions],
    ["following", lifts.followed],
    ["chosen", lifts.chosen],
    ["popular", lifts.popularity],
    ["rare", lifts.rare],
    ["editors", lifts.recency + lifts.editorial],
  ];
}

/** The reason as text; null if it can't be stated for this story without overclaiming. */
function namedReason(
  what: Exclude<Nameable, "editors">,
  candidates: Candidates,
  row: number,
  preferences: UserPreferences,
  read: Read,
  similarity: SimilarityRule,
): Reason | null {
  const card = candidates.cards[row] as NewsCard;
  const vector = rowOf(candidates.vectors, row);
  const { section } = card;
  switch (what) {
    case "read": {
      const similar = similarity.of(card, vector, preferences.clicks, preferences.clickVectors);
      return similar.length ? readReason(card, similar, preferences, read) : null;
    }
    case "section": {
      const count = read.sections.get(section) ?? 0;
      return count >= READ_OFTEN ? reason("interest", WHYS.say("section", { count, section })) : null;
    }
    case "liked": {
      const [closest] = similarity.of(card, vector, preferences.likedCards, preferences.liked);
      const example = closest && preferences.likedCards[closest.row];
      return example ? reason("liked", WHYS.say("liked", { title: example.title }), { clicks: [example] }) : null;
    }
    case "following":
      return followReason(card, preferences.followed);
    case "chosen":
      return preferences.chosenSections.has(section) ? reason("chosen", WHYS.say("chosen", { section })) : null;
    case "rare":
      return card.publisher ? reason("rare", WHYS.say("rare", { publisher: card.publisher })) : null;
    case "popular":
      return reason("popular", WHYS.say("popular"));
  }
}

function readReason(card: NewsCard, similar: readonly SimilarStory[], preferences: UserPreferences, read: Read): Reason {
  const clickOf = (one: SimilarStory): NewsCard => preferences.clicks[one.row] as NewsCard;
  const close = [...new Map(similar.map((one) => [clickOf(one).id, clickOf(one)])).values()].slice(0, CLICKS_NAMED);
  const [first] = similar as [SimilarStory];
  const { title } = close[0] as NewsCard;
  const count = read.topics.get(topicOf(card)) ?? 0;
  const words =
    card.topic && count >= READ_OFTEN
      ? WHYS.say("topic", { count, topic: card.topic })
      : first.tie === "name"
        ? WHYS.say("name", { name: first.name, title })
        : WHYS.say("close", { title });
  return reason("interest", words, { interest: preferences.clickInterests[first.row] || null, clicks: close });
}

/** A fact about the story: it is recent, or its editors rated it above the mean. No words if neither is true. */
function editors(lifts: Lifts, preferences: UserPreferences, isRecent: boolean): Reason {
  const [recent, weighty] = [isRecent && lifts.recency > 0, lifts.editorial > 0];
  if (!recent && !weighty) return reason("editors", "");
  const description = WHYS.say(recent && weighty ? "recent_and_weighty" : recent ? "recent" : "weighty");
  const known = preferences.clicks.length > 0 || preferences.chosenSections.size > 0 || anyOf(preferences.followed);
  return reason("editors", known ? description : WHYS.say("unused", { said: description }));
}

/** A reason by the narrowest followed name; null if none is followed. */
export function followReason(card: NewsCard, { topics, sections, publishers }: Named): Reason | null {
  for (const [name, names] of [
    [card.topic, topics],
    [card.section, sections],
    [card.publisher, publishers],
  ] as const)
    if (names.has(name)) return reason("following", WHYS.say("following", { name }));
  return null;
}

