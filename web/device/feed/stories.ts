// Opening a story: the click, its text, why it was there, what lies near it.
import type { Clock } from "../moments";
import type { Parts } from "../parts";
import type { PoolBlock } from "../store/pool_codes";
import { type Article, standfirstOf, textOf } from "./item";
import { related } from "./related";
import type { Viewing } from "./viewing";

/** A story's text is waited for so long while the list that it came with is being fetched. */
const TEXT_WAIT_MS = 2_000;

/** clicked: whether the reader followed a link to it; if not, nothing is recorded. found: among the results of a search. */
export interface Opening {
  readonly clicked?: boolean;
  readonly found?: boolean;
}

/** Opens stories. Everything comes from the device; nothing is asked of the backend for one story. */
export class Stories {
  constructor(
    private readonly parts: Parts,
    private readonly viewing: Viewing,
    private readonly fetchTexts: () => Promise<void>,
    private readonly clock: Clock,
  ) {}

  /**
   * Commit the click, then give the story from this device alone; found: among the results of a search. Throws NewsNotHere,
   * and then there is no click.
   */
  async open(newsId: string, feed: string | null, { clicked = true, found = false }: Opening): Promise<Article> {
    const { stores, serving, bodies } = this.parts;
    const card = stores.news.card(newsId);
    const feedId = feed !== null && stores.impressions.served(feed) ? feed : null;
    if (clicked) {
      stores.database.transaction(() => {
        stores.clicks.add(newsId, feedId, this.clock());
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
    const { paragraphs, ending } = textOf(stores.news.body(newsId));
    return {
      card,
      paragraphs,
      ending,
      standfirst: standfirstOf(card, paragraphs),
      reason: serving.item(feedId, newsId)?.reason ?? null,
      related: related(this.parts, newsId),
      reactions: stores.feedback.kinds().get(newsId) ?? [],
      feed_id: feedId,
    };
  }

  /** Opened from the results of a search: that view remembers it as well. */
  private rememberFound(newsId: string): void {
    const { stores, serving, searched } = this.parts;
    stores.searches.opened(newsId, this.clock());
    const encoder = serving.manifest()?.encoder;
    if (encoder !== undefined) searched.keepOpened(newsId, encoder);
  }

  /** What to ask the text of an opened story among, where its reader chose that news is found here; null elsewhere. */
  private block(newsId: string): PoolBlock | null {
    const { stores, serving } = this.parts;
    const listed = stores.defaultList.current()?.newsIds ?? [];
    return serving.context.recall.findsHere() && !listed.includes(newsId) ? stores.pool.block(newsId) : null;
  }
}
