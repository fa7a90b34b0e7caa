// The reader's interests: which clicks form one, its name, and whether it is muted. Names and mutes are kept in the
// store, each with the clicked articles it was given for.
import { mostCommon } from "../feed/exploration";
import { distinctLabels } from "./interest_labels";
import type { NewsCard } from "../protocol/news";
import type { Preferences } from "../store/preferences";
import { bestFirst, meanOf, products, stacked, type Vectors } from "../vectors";

export const HEADLINES = 4;
export const TOPICS = 3;

/** A recent click whose card and vector are on the device; at: milliseconds since 1970. */
export interface ClickedNews {
  readonly clickId: number;
  readonly at: number;
  readonly card: NewsCard;
  readonly vector: Float32Array;
}

/** What the reader set for an interest: a name or null, muted or not, and the clicked articles concerned. */
export interface InterestChoice {
  readonly interestId: number;
  readonly name: string | null;
  readonly muted: boolean;
  readonly newsIds: ReadonlySet<string>;
}

export type MutedClicks = readonly (readonly [InterestChoice, readonly ClickedNews[]])[];

/**
 * Recent clicks, oldest first, as the feed uses them; muted clicks are kept separately and never used in reports or
 * ranking. labels [H]: the channel of each active click; names has one entry per channel, clickNames one per click.
 */
export interface Profile {
  readonly active: readonly ClickedNews[];
  readonly muted: MutedClicks;
  readonly labels: readonly number[];
  readonly names: readonly string[];
  readonly clickNames: readonly string[];
}

/** One interest of the reader, with its names as shown on pages; weight is its share of the recent clicks. */
export interface InterestCluster {
  readonly key: number;
  readonly label: string;
  readonly named_by_reader: boolean;
  readonly muted: boolean;
  readonly weight: number;
  readonly clicks: number;
  readonly topics: readonly string[];
  readonly headlines: readonly NewsCard[];
  readonly last_click_at: number;
}

/** The clicks that count, and those of muted interests. */
export function withoutMuted(
  clicks: readonly ClickedNews[],
  kept: readonly InterestChoice[],
): { active: ClickedNews[]; muted: MutedClicks } {
  const silent = kept.filter((interest) => interest.muted);
  return {
    active: clicks.filter((click) => !silent.some((interest) => interest.newsIds.has(click.card.id))),
    muted: silent.map((one) => [one, clicks.filter((click) => one.newsIds.has(click.card.id))] as const),
  };
}

/**
 * Names every channel: the reader's name if it contains most of a named interest's articles, otherwise by its content.
 */
export function namedProfile(
  active: readonly ClickedNews[],
  muted: MutedClicks,
  labels: readonly number[],
  kept: readonly InterestChoice[],
): Profile {
  const groups = groupsOf(active, labels);
  const chosenNames = new Map([...matched(groups, kept)].map(([channel, interest]) => [channel, interest.name ?? ""]));
  const names = distinctLabels(groups.map(cardsOf), chosenNames);
  return { active, muted, labels, names, clickNames: labels.map((label) => names[label] as string) };
}

/** Matches each named interest to a current channel: most shared articles, one to one, ties to the larger. */
export function matched(
  groups: readonly (readonly ClickedNews[])[],
  kept: readonly InterestChoice[],
): Map<number, InterestChoice> {
  const shared = groups.flatMap((group, channel) => {
    const held = new Set(group.map((click) => click.card.id));
    return kept
      .filter((interest) => !interest.muted && interest.name !== null)
      .map((interest) => ({ channel, interest, overlap: [...interest.newsIds].filter((id) => held.has(id)).length }));
  });
  shared.sort((one, other) => other.overlap - one.overlap || one.channel - other.channel);
  const found = new Map<number, InterestChoice>();
  const taken = new Set<number>();
  for (const { channel, interest, overlap } of shared)
    if (overlap && !found.has(channel) && !taken.has(interest.interestId)) {
      found.set(channel, interest);
      taken.add(interest.interestId);
    }
  return found;
}

/** All interests for the Interests page, heaviest first, muted ones last. */
export function interestCards(profile: Profile, kept: readonly InterestChoice[]): InterestCluster[] {
  const groups = groupsOf(profile.active, profile.labels);
  const namedInterests = matched(groups, kept);
  const total = Math.max(1, profile.active.length);
  const shown = groups.map((group, channel) =>
    clusterOf(group, profile.names[channel] as string, namedInterests.has(channel), false, group.length / total),
  );
  const muted = profile.muted.filter(([, clicks]) => clicks.length);
  const names = new Map(profile.names.map((name, at) => [at, name]));
  muted.forEach(([{ name }], at) => name && names.set(groups.length + at, name));
  const labels = distinctLabels([...groups.map(cardsOf), ...muted.map(([, clicks]) => cardsOf(clicks))], names);
  return [
    ...shown,
    ...muted.map(([{ name }, clicks], at) =>
      clusterOf(clicks, labels[groups.length + at] as string, name !== null, true, 0),
    ),
  ];
}

/** The clicks of the interest that `key` (a click's id) belongs to; none if that click isn't recent. */
export function clicksOf(profile: Profile, key: number): readonly ClickedNews[] {
  const groups = [...groupsOf(profile.active, profile.labels), ...profile.muted.map(([, clicks]) => clicks)];
  return groups.find((group) => group.some((click) => click.clickId === key)) ?? [];
}

function groupsOf(clicks: readonly ClickedNews[], labels: readonly number[]): ClickedNews[][] {
  const groups: ClickedNews[][] = Array.from({ length: Math.max(-1, ...labels) + 1 }, () => []);
  clicks.forEach((click, at) => (groups[labels[at] as number] as ClickedNews[]).push(click));
  return groups;
}

function cardsOf(clicks: readonly ClickedNews[]): NewsCard[] {
  return clicks.map((click) => click.card);
}

/** The vectors of clicks, [H, D]. */
export function vectorsOf(clicks: readonly ClickedNews[], width: number): Vectors {
  return stacked(clicks.map((click) => click.vector), width);
}

function clusterOf(
  clicks: readonly ClickedNews[],
  label: string,
  namedByReader: boolean,
  muted: boolean,
  weight: number,
): InterestCluster {
  const all = vectorsOf(clicks, clicks[0]?.vector.length ?? 0);
  const central = bestFirst(products(all, Float32Array.from(meanOf(all) ?? [])));
  const headlines = new Map(central.map((row) => (clicks[row] as ClickedNews).card).map((card) => [card.id, card]));
  return {
    key: Math.min(...clicks.map((click) => click.clickId)),
    label,
    named_by_reader: namedByReader,
    muted,
    weight,
    clicks: clicks.length,
    topics: mostCommon(clicks.map((click) => click.card.topic)).slice(0, TOPICS).map(([topic]) => topic),
    headlines: [...headlines.values()].slice(0, HEADLINES),
    last_click_at: Math.max(...clicks.map((click) => click.at)),
  };
}

const PREFERENCE = "interests";
export const NAME_LIMIT_CHARS = 60;
type InterestRow = { id: number; name: string | null; muted: boolean; news: string[] };

/** Stores the reader's named and muted interests, which are few enough for one preference. */
export class InterestNames {
  constructor(private readonly preferences: Preferences) {}

  /** All of them, oldest first. */
  kept(): InterestChoice[] {
    const rows = (this.preferences.get(PREFERENCE) ?? []) as InterestRow[];
    return rows.map((row) => ({ interestId: row.id, name: row.name, muted: row.muted, newsIds: new Set(row.news) }));
  }

  /** Ids of the clicked articles of muted interests. */
  muted(): Set<string> {
    return new Set(this.kept().filter((one) => one.muted).flatMap((one) => [...one.newsIds]));
  }

  /** Names the interest with these articles; a blank name restores its label. Throws RangeError. */
  name(newsIds: Iterable<string>, name: string): void {
    const plain = name.split(/\s+/).filter(Boolean).join(" ");
    const length = [...plain].length;
    if (length > NAME_LIMIT_CHARS) throw new RangeError(`name: ${length} characters, limit ${NAME_LIMIT_CHARS}`);
    this.say(new Set(newsIds), (held) => ({ name: plain || null, muted: held?.muted ?? false }));
  }

  /** Leaves these articles out of reports and ranking, or includes them again. */
  mute(newsIds: Iterable<string>, muted: boolean): void {
    this.say(new Set(newsIds), (held) => ({ name: held?.name ?? null, muted }));
  }

  /** Deletes names and mutes of these articles. */
  forget(newsIds: Iterable<string>): void {
    const deletedIds = new Set(newsIds);
    this.keep(this.kept().map((one) => without(one, deletedIds)));
  }

  /** Stores one interest for these articles; they are removed from every earlier one. */
  private say(news: Set<string>, change: (held: InterestChoice | null) => Pick<InterestChoice, "name" | "muted">): void {
    if (!news.size) return;
    const kept = this.kept();
    const shared = (one: InterestChoice): number => [...one.newsIds].filter((id) => news.has(id)).length;
    let held: InterestChoice | null = null;
    for (const one of kept) if (shared(one) > (held ? shared(held) : 0)) held = one;
    const interestId = held?.interestId ?? Math.max(0, ...kept.map((one) => one.interestId)) + 1;
    const others = kept.filter((one) => one.interestId !== interestId).map((one) => without(one, news));
    this.keep([...others, { interestId, newsIds: news, ...change(held) }]);
  }

  private keep(interests: readonly InterestChoice[]): void {
    const rows = interests
      .filter((one) => one.newsIds.size && (one.muted || one.name))
      .sort((one, other) => one.interestId - other.interestId)
      .map((one): InterestRow => ({ id: one.interestId, name: one.name, muted: one.muted, news: [...one.newsIds].sort() }));
    this.preferences.set(PREFERENCE, rows.length ? rows : null);
  }
}

function without(interest: InterestChoice, deletedIds: ReadonlySet<string>): InterestChoice {
  return { ...interest, newsIds: new Set([...interest.newsIds].filter((id) => !deletedIds.has(id))) };
}
