// Opens stories, and records which stories the reader saw.\nOpening a story records the click and gives its text, its
// reason and related stories.
import type { Clock } from "../protocol/moments";
import type { Parts } from "../parts";
import { leadsHome } from "../protocol/links";
import type { NewsCard } from "../protocol/news";
import type { ImpressionStore } from "../store/impressions";
import type { PoolBlock } from "../store/pool_codes";
import { standfirstOf, textOf, type Article, type Feed, type PageSlot } from "./item";
import { related } from "./whole_pool";

/**
 * The other slots are beside this column on a wide page, so reading down one column doesn't pass the other's stories.
 */
const MAIN_COLUMN: readonly PageSlot[] = ["lead", "for_you", "more"];

/** Records which stories of a feed were seen. */
export class Viewing {
  private readonly watched = new Set<string>();

  constructor(
    private readonly impressions: ImpressionStore,
    private readonly feed: (feedId: string) => Feed | null,
    private readonly clock: Clock,
  ) {}

  /** Records stories as seen (an empty list when the page starts); returns how many are newly seen. */
  report(feedId: string, newsIds: readonly string[]): number {
    if (!this.impressions.served(feedId)) return 0; // unknown feed, or erased while the page was open
    this.watched.add(feedId);
    return newsIds.length ? this.impressions.view(feedId, newsIds, this.clock()) : 0;
  }

  forget(): void {
    this.watched.clear();
  }

  /** Records that a story opened from a feed was seen, and the stories above it if no script reports views. */
  opened(feedId: string, newsId: string): void {
    const passed = this.watched.has(feedId) ? [] : this.above(feedId, newsId);
    this.impressions.view(feedId, [...passed, newsId], this.clock());
  }

  private above(feedId: string, newsId: string): string[] {
    const items = this.feed(feedId)?.items ?? [];
    const at = items.find((item) => item.card.id === newsId);
    if (!at) return [];
    const isMain = (slot: PageSlot) => MAIN_COLUMN.includes(slot);
    const column = items.filter((item) => isMain(item.slot) === isMain(at.slot));
    return column.filter((item) => item.position < at.position).map((item) => item.card.id);
  }
}

/** How long to wait for a story's text while its list is being fetched. */
const TEXT_WAIT_MS = 2_000;

/**
 * clicked: whether the reader followed a link; otherwise nothing is recorded. found: whether it was a search result.
 */
export interface Opening {
  readonly clicked?: boolean;
  readonly found?: boolean;
}

/** Opens stories from the device alone; never requests a single story from the backend. */
export class Stories {
  constructor(
    private readonly parts: Parts,
    private readonly viewing: Viewing,
    private readonly fetchTexts: () => Promise<void>,
    private readonly clock: Clock,
  ) {}

  /** Records the click, then returns the story from this device alone. Throws NewsNotHere without recording a click. */
  async open(newsId: string, feed: string | null, { clicked = true, found = false }: Opening): Promise<Article> {
    const { stores, serving, bodies } = this.parts;
    const card = this.shown(stores.news.card(newsId));
    const feedId = feed !== null && stores.impressions.served(feed) ? feed : null;
    if (clicked) {
      stores.database.transaction(() => {
        stores.clicks.add(newsId, feedId, this.clock());
        stores.readMarks.opened(newsId, this.clock());
        if (feedId !== null) this.viewing.opened(feedId, newsId);
      });
      if (found) this.rememberFound(newsId);
    }
    if (stores.news.body(newsId) === null) {
      const block = clicked ? this.block(newsId) : null;
      if (block) {
        bodies.wantBlock(block);
        void this.fetchTexts();
      }
      await bodies.waitFor(newsId, TEXT_WAIT_MS);
    }
    const { pieces, ending } = textOf(stores.news.body(newsId), card.abstract);
    return {
      card,
      pieces,
      ending,
      standfirst: standfirstOf(card, pieces),
      reason: serving.item(feedId, newsId)?.reason ?? null,
      related: related(this.parts, newsId),
      reactions: stores.feedback.kinds().get(newsId) ?? [],
      feed_id: feedId,
    };
  }

  /** Removes a card's link if it points to the host of this app's own page. */
  private shown(card: NewsCard): NewsCard {
    return leadsHome(card.url, this.parts.backendUrl) ? { ...card, url: "" } : card;
  }

  /** Stores the click in the search view too, for a story opened from search results. */
  private rememberFound(newsId: string): void {
    const { stores, serving, searched } = this.parts;
    stores.searches.opened(newsId, this.clock());
    const encoder = serving.manifest()?.encoder;
    if (encoder !== undefined) searched.keepOpened(newsId, encoder);
  }

  /**
   * The block of the pool to request together with an opened story's text, if the reader chose on-device search;
   * otherwise null.
   */
  private block(newsId: string): PoolBlock | null {
    const { stores, serving } = this.parts;
    const listed = stores.defaultList.current()?.newsIds ?? [];
    return serving.context.recall.findsHere() && !listed.includes(newsId) ? stores.pool.block(newsId) : null;
  }
}
