// Why a story is in the feed, said in one sentence; made on the device from the terms of the story's own score.
import whys from "../../../device_app/feed/whys.toml";
import { Prose } from "../prose";
import { rowOf } from "../vectors";
import type { NewsCard } from "../wire/news";
import type { Candidates } from "./candidates";
import type { Reason } from "./item";
import type { Kin, Kinship } from "./kinship";
import type { Placed } from "./page_order";
import { type UserPreferences, anyOf } from "./preferences";
import type { ScoreTerms, TermName } from "./scores";
import { tally } from "./shares";

const CLICKS_NAMED = 3;
/** So many stories read on a topic, or in a section, are worth counting aloud. */
const READ_OFTEN = 2;

/** What readers are told, by what decided. */
const WHYS = new Prose(whys);

type Lifts = Readonly<Record<TermName, number>>;
type Nameable = "read" | "section" | "liked" | "following" | "chosen" | "popular" | "editors";

/** How many of the recent clicks were on each topic and in each section. */
interface Read {
  readonly topics: ReadonlyMap<string, number>;
  readonly sections: ReadonlyMap<string, number>;
}

const topicOf = (card: NewsCard): string => JSON.stringify([card.section, card.topic]);

/**
 * One reason for each place of the page, in its order.
 *
 * Of a personal place: what put its score furthest above the usual one, among what can be named. Likeness to news that
 * was read or liked is named only where there is kinship; of a story that nothing nameable lifts, it is said whether it
 * is recent or weighty above the usual, or neither.
 */
export function reasons(
  candidates: Candidates,
  page: readonly Placed[],
  preferences: UserPreferences,
  score: ScoreTerms,
  kinship: Kinship,
): Reason[] {
  const { clicks } = preferences;
  const read: Read = { topics: tally(clicks.map(topicOf)), sections: tally(clicks.map((card) => card.section)) };
  const cardOf = (place: Placed): NewsCard => candidates.cards[place.row] as NewsCard;
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
    return personal(candidates, place.row, preferences, read, score, kinship);
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
  kinship: Kinship,
): Reason {
  const lifts = score.lifts(row);
  const weights = weightsOf(lifts).sort(([, one], [, other]) => other - one);
  for (const [what, weight] of weights) {
    if (weight <= 0 || what === "editors") break;
    const found = namedReason(what, candidates, row, preferences, read, kinship);
    if (found) return found;
  }
  return editors(lifts, preferences);
}

/** What can be the reason, with what it lifts: terms that a reader would call one thing are taken together. */
function weightsOf(lifts: Lifts): [Nameable, number][] {
  return [
    ["read", lifts.content + lifts.topic_affinity],
    ["section", lifts.section_affinity],
    ["liked", lifts.reactions],
    ["following", lifts.followed],
    ["chosen", lifts.chosen],
    ["popular", lifts.popularity],
    ["editors", lifts.recency + lifts.editorial],
  ];
}

/** The reason in words; null where it can't be told of this story without saying more than is true. */
function namedReason(
  what: Exclude<Nameable, "editors">,
  candidates: Candidates,
  row: number,
  preferences: UserPreferences,
  read: Read,
  kinship: Kinship,
): Reason | null {
  const card = candidates.cards[row] as NewsCard;
  const vector = rowOf(candidates.vectors, row);
  const { section } = card;
  switch (what) {
    case "read": {
      const kin = kinship.of(card, vector, preferences.clicks, preferences.clickVectors);
      return kin.length ? readReason(card, kin, preferences, read) : null;
    }
    case "section": {
      const count = read.sections.get(section) ?? 0;
      return count >= READ_OFTEN ? reason("interest", WHYS.say("section", { count, section })) : null;
    }
    case "liked": {
      const [closest] = kinship.of(card, vector, preferences.likedCards, preferences.liked);
      const example = closest && preferences.likedCards[closest.row];
      return example ? reason("liked", WHYS.say("liked", { title: example.title }), { clicks: [example] }) : null;
    }
    case "following":
      return followReason(card, preferences);
    case "chosen":
      return preferences.chosenSections.has(section) ? reason("chosen", WHYS.say("chosen", { section })) : null;
    case "popular":
      return reason("popular", WHYS.say("popular"));
  }
}

function readReason(card: NewsCard, kin: readonly Kin[], preferences: UserPreferences, read: Read): Reason {
  const clickOf = (one: Kin): NewsCard => preferences.clicks[one.row] as NewsCard;
  const close = [...new Map(kin.map((one) => [clickOf(one).id, clickOf(one)])).values()].slice(0, CLICKS_NAMED);
  const [first] = kin as [Kin];
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

/** By age and weight as far as they are above the usual; else by the fit as a whole; else that nothing decides. */
function editors(lifts: Lifts, preferences: UserPreferences): Reason {
  const [recent, weighty] = [lifts.recency > 0, lifts.editorial > 0];
  const read = preferences.clicks.length > 0 && lifts.content + lifts.topic_affinity > 0;
  const said =
    recent || weighty
      ? WHYS.say(recent && weighty ? "recent_and_weighty" : recent ? "recent" : "weighty")
      : WHYS.say(read ? "content" : "rest");
  const known = preferences.clicks.length > 0 || preferences.chosenSections.size > 0 || anyOf(preferences.followed);
  return reason("editors", known ? said : WHYS.say("unused", { said }));
}

/** Named after the narrowest name that is followed; null if none is. */
export function followReason(card: NewsCard, preferences: UserPreferences): Reason | null {
  const { topics, sections, publishers } = preferences.followed;
  for (const [name, names] of [
    [card.topic, topics],
    [card.section, sections],
    [card.publisher, publishers],
  ] as const)
    if (names.has(name)) return reason("following", WHYS.say("following", { name }));
  return null;
}

