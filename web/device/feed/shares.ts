// What share of a feed belongs to what its reader picked and reads, and what it is for others at most. Scores alone
// don't keep it: a few reads would fill a page with their topic, or three refreshes use it up.
import type { FeedSettings } from "../feed_settings";
import { type Candidates, named } from "./candidates";
import { Cap, Share } from "./diversity";
import type { UserPreferences } from "./preferences";

/**
 * Of one page. topics, sections and chosen are the shares of what is read and of the sections picked at the first visit;
 * own [n] tells which candidates are of a section that the reader picked, follows or reads; sectionLimit is what another
 * section may have of the page, half what one of these may; unwanted tells of how many stories of a topic the reader
 * wants less.
 */
export class PageShares {
  private constructor(
    readonly topics: ReadonlyMap<string, Share>,
    readonly sections: ReadonlyMap<string, Share>,
    readonly chosen: Share | null,
    readonly own: readonly boolean[],
    readonly sectionLimit: number,
    readonly half: number,
    readonly unwanted: ReadonlyMap<string, number>,
    private readonly candidates: Candidates,
  ) {}

  /** As the settings have them, for a page of `size` places. */
  static of(candidates: Candidates, preferences: UserPreferences, settings: FeedSettings, size: number): PageShares {
    const { clicks, chosenSections: picked } = preferences;
    const reading = settings.reading_share * size * Math.min(1, clicks.length / settings.reads_for_share);
    const blending = picked.size > 0 && clicks.length < settings.blend_reads;
    const mine = new Set([...clicks.map((card) => card.section), ...picked, ...preferences.followed.sections]);
    const read = clicks.map((card) => card.topic).filter((topic) => topic !== "");
    return new PageShares(
      byName(candidates.topics, read, reading),
      byName(candidates.sections, clicks.map((card) => card.section), reading),
      blending ? new Share(named(candidates.sections, picked), Math.ceil(settings.chosen_share * size)) : null,
      named(candidates.sections, mine),
      Math.max(1, Math.trunc(settings.section_share * size)),
      Math.max(1, Math.floor(size / 2)),
      tally(preferences.unwanted),
      candidates,
    );
  }

  /** Shares of which none lies within another (but picked sections may be read as well). */
  get outermost(): Share[] {
    return [...this.sections.values(), ...(this.chosen ? [this.chosen] : [])];
  }

  /** All, in the order in which they are filled. */
  get least(): Share[] {
    return [...this.topics.values(), ...this.outermost];
  }

  /**
   * What a topic, a section and the picked sections together may still have beside these rows. A topic: `topicLimit`,
   * or its share if that is more, and one less for each of its stories of which less is wanted. A section that is none
   * of the reader's own: sectionLimit; one of them, and all that were picked together: half of the page.
   */
  caps(topicLimit: number, taken: readonly number[]): Cap[] {
    const { topics, sections } = this.candidates;
    const shares = [...this.topics].filter(([, share]) => share.least > topicLimit);
    const ofTopics = new Map(shares.map(([topic, share]) => [topic, share.least]));
    for (const [topic, less] of this.unwanted)
      ofTopics.set(topic, Math.max(1, (ofTopics.get(topic) ?? topicLimit) - less));
    const ofOwn = sections.filter((_, row) => this.own[row]).map((section) => [section, this.half] as const);
    const found = [
      new Cap(topics, topicLimit, ofTopics),
      new Cap(sections, this.sectionLimit, new Map(ofOwn)),
    ];
    const { chosen } = this;
    if (chosen) found.push(new Cap(chosen.rows.map((here, row) => (here ? -1 : row)), this.half));
    return found.map((cap) => cap.beside(taken));
  }

  /** [n]: whether a row's section may have another place beside these rows. */
  room(taken: readonly number[]): boolean[] {
    const { sections } = this.candidates;
    const held = tally(taken.map((row) => sections[row] as string));
    return sections.map((section, row) => this.own[row] || (held.get(section) ?? 0) < this.sectionLimit);
  }
}

/** How often each name stands there, in the order of first occurrences. */
export function tally<T>(names: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** The same, greatest count first, equal ones in the order of first occurrences. */
export function mostCommon<T>(names: Iterable<T>): [T, number][] {
  return [...tally(names)].sort(([, one], [, other]) => other - one);
}

/** The share of each name that was read, in proportion, greatest first; names with no whole place have none. */
function byName(column: readonly string[], read: readonly string[], places: number): Map<string, Share> {
  const found = new Map<string, Share>();
  for (const [name, count] of mostCommon(read)) {
    const least = Math.floor((places * count) / read.length + 1e-9);
    if (least) found.set(name, new Share(column.map((each) => each === name), least));
  }
  return found;
}
