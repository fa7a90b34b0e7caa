// The saved list: searches and followed topics, what is new in each, and what they are used for.
import { momentOf } from "../moments";
import type { DeviceStores } from "../parts";
import { MODES } from "../privacy/modes";
import type { PrivacySettings } from "../privacy/settings";
import type { WordHit } from "../store/search_index";
import { type SavedSearch, plainOf } from "../store/searches";
import { toUs } from "../store/rows";
import type { Moment } from "../wire/values";

const COUNTED = 200;

/** A saved search: stories that have its words now, and how many came since the reader last looked. */
export interface SearchLine {
  readonly search: { readonly id: number; readonly words: string };
  readonly stories: number;
  readonly new: number;
}

/** A followed topic, since when, and how many stories of it are here. */
export interface TopicLine {
  readonly name: string;
  readonly since: Moment;
  readonly stories: number;
}

/** use is 'report', 'here' (recall on this device), or why neither: 'off' by the reader's switch, 'mode'. */
export interface SearchesView {
  readonly searches: readonly SearchLine[];
  readonly topics: readonly TopicLine[];
  readonly use: "off" | "report" | "here" | "mode";
}

/** hits: what a search finds now. Of a topic at most two hundred stories are counted. */
export async function searchesView(
  stores: DeviceStores,
  settings: PrivacySettings,
  hits: (words: string) => Promise<readonly WordHit[]>,
): Promise<SearchesView> {
  const searches: SearchLine[] = [];
  for (const one of stores.searches.saved().reverse()) searches.push(lineOf(one, await hits(one.words)));
  return {
    searches,
    topics: stores.stances.followedTopics().map(({ name, at }) => ({
      name,
      since: momentOf(at),
      stories: stores.news.named("topic", name, COUNTED).length,
    })),
    use: useOf(settings),
  };
}

/** The saved search of these words. */
export function savedIn(view: SearchesView, words: string): SearchLine["search"] | null {
  return view.searches.find(({ search }) => search.words === plainOf(words))?.search ?? null;
}

/** What saved searches and followed topics are used for under these switches. */
export function useOf(settings: PrivacySettings): SearchesView["use"] {
  if (!settings.searches_in_reports) return "off";
  const { finds, reports } = MODES[settings.mode];
  return finds === "here" ? "here" : reports ? "report" : "mode";
}

function lineOf({ id, words, looked_at }: SavedSearch, hits: readonly WordHit[]): SearchLine {
  const since = toUs(looked_at);
  return { search: { id, words }, stories: hits.length, new: hits.filter((hit) => hit.publishedUs > since).length };
}
