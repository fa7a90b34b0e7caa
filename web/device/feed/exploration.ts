// Fills the slots that don't depend on the reader's profile (fresh, and rarely read sections), and sets the shares of a
// page.\nPageShares guarantees a minimum to what the reader picked and reads, and limits the rest. Scores alone don't
// keep these shares: a few reads would fill a page with their topic, or three refreshes would use the topic up.
import type { FeedSettings } from "../feed_settings";
import type { NewsCard } from "../protocol/news";
import { bestFirst } from "../vectors";
import { named, placesOf, type Candidates } from "./candidates";
import { lots, type Chance } from "./chance";
import { Cap, Share } from "./diversity";
import type { UserPreferences } from "./preference_reader";
import { ageHours, recency } from "./scores";

/** Fresh articles are drawn from this many of the newest. */
const FRESH_POOL = 40;
/** Share of reading_share that one topic's personal places may fill; its developing stories come on top. */
const COLUMN_SHARE = 0.75;

/**
 * Rows from the last hours, drawn at random from the newest, from different sections if possible. free [n]: the rows
 * that may be used. The draw depends on the reader only through `free`.
 */
export function freshRows(
  candidates: Candidates,
  free: readonly boolean[],
  now: number,
  settings: FeedSettings,
  chance: Chance,
): number[] {
  const age = ageHours(candidates, now);
  const recent = placesOf(free.map((here, row) => here && (age[row] as number) <= settings.fresh_hours));
  const newest = bestFirst(age.map((hours) => -hours), recent).slice(0, FRESH_POOL);
  const lot = lots(chance, newest.map((row) => candidates.ids[row] as string));
  const of = (row: number) => lot.get(candidates.ids[row] as string) as number;
  newest.sort((one, other) => of(one) - of(other));
  const sections = new Map<string, number>();
  const ranked = newest.map((row) => {
    const { section } = candidates.cards[row] as NewsCard;
    const before = sections.get(section) ?? 0;
    sections.set(section, before + 1);
    return [before, row] as const;
  });
  ranked.sort(([one], [other]) => one - other);
  return ranked.slice(0, settings.fresh_slots).map(([, row]) => row);
}

/**
 * The best articles, by editorial weight and age, of sections that the reader rarely opens. Sections are drawn without
 * replacement with weight 1 / (1 + clicks in the section)^2 (Efraimidis and Spirakis 2006): the least read come most
 * often and none is excluded.
 */
export function exploreRows(
  candidates: Candidates,
  free: readonly boolean[],
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  chance: Chance,
): number[] {
  const fresh = recency(candidates, now, settings.half_life_hours);
  const worth = candidates.cards.map((card, row) => card.weight + (fresh[row] as number));
  const best = new Map<string, number>();
  for (const row of bestFirst(worth, placesOf(free))) {
    const { section } = candidates.cards[row] as NewsCard;
    if (!best.has(section)) best.set(section, row);
  }
  const read = tally(preferences.clicks.map((card) => card.section));
  const lot = lots(chance, best.keys());
  const key = (name: string) => Math.log(Math.max(lot.get(name) as number, 1e-300)) * (1 + (read.get(name) ?? 0)) ** 2;
  return [...best.keys()]
    .sort((one, other) => key(other) - key(one))
    .slice(0, settings.explore_slots)
    .map((name) => best.get(name) as number);
}

/**
 * Shares and caps of one page. topics, sections, chosen: shares of what the reader reads and of the sections picked at
 * the first visit. limits [n]: the most places for each candidate's section: half the page for one that the reader
 * picked, follows or reads, section_share for others. columnTopic: the most personal places for one topic. unwanted: the
 * number of disliked stories per topic.
 */
export class PageShares {
  private constructor(
    readonly topics: ReadonlyMap<string, Share>,
    readonly sections: ReadonlyMap<string, Share>,
    readonly chosen: Share | null,
    readonly limits: readonly number[],
    readonly half: number,
    readonly columnTopic: number,
    readonly unwanted: ReadonlyMap<string, number>,
    private readonly candidates: Candidates,
  ) {}

  /** The shares that the settings give for a page of `size` places. */
  static of(candidates: Candidates, preferences: UserPreferences, settings: FeedSettings, size: number): PageShares {
    const { clicks, chosenSections: picked } = preferences;
    const reading = settings.reading_share * size * Math.min(1, clicks.length / settings.reads_for_share);
    const blending = picked.size > 0 && clicks.length < settings.blend_reads;
    const mine = new Set([...clicks.map((card) => card.section), ...picked, ...preferences.followed.sections]);
    const read = clicks.map((card) => card.topic).filter((topic) => topic !== "");
    const half = Math.max(1, Math.floor(size / 2));
    const other = Math.max(1, Math.trunc(settings.section_share * size));
    return new PageShares(
      inReadSections(byName(candidates.topics, read, reading), candidates, clicks),
      byName(candidates.sections, clicks.map((card) => card.section), reading),
      blending ? new Share(named(candidates.sections, picked), Math.ceil(settings.chosen_share * size)) : null,
      named(candidates.sections, mine).map((own) => (own ? half : other)),
      half,
      Math.ceil(COLUMN_SHARE * settings.reading_share * size - 1e-9),
      tally(preferences.unwanted),
      candidates,
    );
  }

  /** Shares not contained in another (picked sections may also be read ones). */
  get outermost(): Share[] {
    return [...this.sections.values(), ...(this.chosen ? [this.chosen] : [])];
  }

  /** All shares, in the order in which they are filled. */
  get least(): Share[] {
    return [...this.topics.values(), ...this.outermost];
  }

  /**
   * The most of `places` personal places, next to these rows, for each topic, each section, and the picked sections
   * together. A topic gets `topicLimit` or its share if greater, minus one per disliked story; a section its limit, and
   * all picked ones together half the page. The personal places, which a reader sees as one column, are capped too:
   * columnTopic of one topic, and half of one section.
   */
  caps(topicLimit: number, taken: readonly number[], places: number): Cap[] {
    const { topics, sections } = this.candidates;
    const shares = [...this.topics].filter(([, share]) => share.least > topicLimit);
    const ofTopics = new Map(shares.map(([topic, share]) => [topic, share.least]));
    for (const [topic, less] of this.unwanted)
      ofTopics.set(topic, Math.max(1, (ofTopics.get(topic) ?? topicLimit) - less));
    const ofSections = new Map(sections.map((section, row) => [section, this.limits[row] as number]));
    const found = [new Cap(topics, topicLimit, ofTopics), new Cap(sections, this.half, ofSections)];
    const { chosen } = this;
    if (chosen) found.push(new Cap(chosen.rows.map((here, row) => (here ? -1 : row)), this.half));
    const ofColumn = [
      new Cap(topics, Math.max(topicLimit, this.columnTopic)),
      new Cap(sections, Math.max(1, Math.floor(places / 2))),
    ];
    return [...found.map((cap) => cap.beside(taken)), ...ofColumn];
  }

  /** [n]: whether a row's section may have another place next to these rows. */
  room(taken: readonly number[]): boolean[] {
    const { sections } = this.candidates;
    const held = tally(taken.map((row) => sections[row] as string));
    return sections.map((section, row) => (held.get(section) ?? 0) < (this.limits[row] as number));
  }
}

/** Counts each name, in order of first occurrence. */
export function tally<T>(names: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Counts each name, greatest count first; ties in order of first occurrence. */
export function mostCommon<T>(names: Iterable<T>): [T, number][] {
  return [...tally(names)].sort(([, one], [, other]) => other - one);
}

/** Returns the shares of topics in the sections in which they were read: "injuries" in one sport says nothing of
 * another. */
function inReadSections(topics: Map<string, Share>, { sections }: Candidates, clicks: UserPreferences["clicks"]): Map<string, Share> {
  const found = new Map<string, Share>();
  for (const [name, share] of topics) {
    const own = named(sections, new Set(clicks.filter((card) => card.topic === name).map((card) => card.section)));
    found.set(name, new Share(share.rows.map((of, row) => of && (own[row] as boolean)), share.least));
  }
  return found;
}

/** Each name's share in proportion to reads, greatest first; names with less than one place have none. */
function byName(column: readonly string[], read: readonly string[], places: number): Map<string, Share> {
  const found = new Map<string, Share>();
  for (const [name, count] of mostCommon(read)) {
    const least = Math.floor((places * count) / read.length + 1e-9);
    if (least) found.set(name, new Share(column.map((each) => each === name), least));
  }
  return found;
}
