// The reader's own click history, a page at a time.
import type { DeviceStores } from "../parts";
import { momentOf } from "../moments";
import type { NewsCard } from "../wire/news";
import type { Moment } from "../wire/values";

/** One click; card is null if the news is no longer on the device. */
export interface HistoryEntry {
  readonly click_id: number;
  readonly at: Moment;
  readonly news_id: string;
  readonly card: NewsCard | null;
}

/** Clicks newest first; page counts from 1. */
export interface HistoryPage {
  readonly query: string;
  readonly page: number;
  readonly pages: number;
  readonly total: number;
  readonly entries: readonly HistoryEntry[];
}

/** One page of clicks whose card has every word of `query`, or of all clicks. */
export function historyPage(stores: DeviceStores, query: string, page: number): HistoryPage {
  const found = stores.clicks.search(query, page);
  const cards = new Map(stores.news.cards(found.rows.map((click) => click.newsId)).map((card) => [card.id, card]));
  const entries = found.rows.map((click) => ({
    click_id: click.id,
    at: momentOf(click.at),
    news_id: click.newsId,
    card: cards.get(click.newsId) ?? null,
  }));
  return { query, page: found.number, pages: found.pages, total: found.total, entries };
}
