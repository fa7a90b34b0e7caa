// Impressions: articles that feeds served, and which of them were viewed. An impression is served when its feed is
// made, and viewed once half of its card was in view for a second. Viewed articles rank lower in later feeds; those not
// clicked are negatives in training.
import { fromUs, toUs, type Database } from "./database";

/** One feed with at least one click: its seen articles, in order, and the clicked ones. */
export interface Shown {
  readonly feedId: string;
  readonly at: number;
  readonly shown: readonly string[];
  readonly clicked: readonly string[];
}

const NAMED = "news_id IN (SELECT value FROM json_each(?))";

/** Articles served in each feed, and when each was viewed there. Moments are milliseconds since 1970. */
export class ImpressionStore {
  private views: Map<string, { feeds: number; at: number }> | null = null;

  constructor(private readonly database: Database) {
    database.whenUndone(() => (this.views = null));
  }

  /** Records a feed's articles and their popularity then; articles already served in it aren't changed. */
  serve(feedId: string, newsIds: readonly string[], at: number, popularity: readonly number[] | null = null, first = 0): void {
    this.database.quickTransaction(() => {
      newsIds.forEach((newsId, index) =>
        this.database.run(
          `INSERT INTO impression (feed_id, news_id, position, at, popularity) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT DO NOTHING`,
          [feedId, newsId, first + index, toUs(at), popularity?.[index] ?? null],
        ),
      );
    });
  }

  /** Whether anything of that feed is kept. */
  served(feedId: string): boolean {
    return this.database.one("SELECT 1 FROM impression WHERE feed_id = ? LIMIT 1", [feedId]) !== undefined;
  }

  /** Records articles of a feed as viewed; returns how many are newly viewed. The first time is kept. */
  view(feedId: string, newsIds: readonly string[], at: number): number {
    return this.database.quickTransaction(() => {
      const sql = `UPDATE impression SET viewed_at = ?
                   WHERE feed_id = ? AND viewed_at IS NULL AND ${NAMED} RETURNING news_id`;
      const viewed = this.database.rows<{ news_id: string }>(sql, [toUs(at), feedId, JSON.stringify(newsIds)]);
      for (const { news_id } of viewed) this.noteView(news_id, toUs(at));
      return viewed.length;
    });
  }

  /** Ids of articles viewed at or after `since`. */
  seen(since: number): Set<string> {
    return new Set([...this.known()].filter(([, view]) => view.at >= toUs(since)).map(([newsId]) => newsId));
  }

  /** In how many feeds each article was viewed, for articles last viewed at or after `since`. */
  timesSeen(newsIds: Iterable<string>, since: number): Map<string, number> {
    const found = new Map<string, number>();
    for (const newsId of newsIds) {
      const view = this.known().get(newsId);
      if (view && view.at >= toUs(since)) found.set(newsId, view.feeds);
    }
    return found;
  }

  /** The newest feeds with clicks, newest first, at most `limit`, each with its viewed articles. */
  forTraining(limit: number): Shown[] {
    const found = this.database.rows<{ feed_id: string; last_at: number; items: string }>(
      `SELECT impression.feed_id, max(impression.at) AS last_at,
              json_group_array(json_array(impression.position, impression.news_id, click.id IS NOT NULL)) AS items
       FROM impression LEFT JOIN click USING (feed_id, news_id)
       WHERE impression.feed_id IN (SELECT feed_id FROM click)
             AND (impression.viewed_at IS NOT NULL OR click.id IS NOT NULL)
       GROUP BY impression.feed_id HAVING count(click.id) > 0
       ORDER BY last_at DESC, impression.feed_id LIMIT ?`,
      [limit],
    );
    return found.map((row) => {
      const items = (JSON.parse(row.items) as [number, string, number][]).sort(
        (a, b) => a[0] - b[0] || (a[1] < b[1] ? -1 : 1),
      );
      return {
        feedId: row.feed_id,
        at: fromUs(row.last_at),
        shown: items.map(([, newsId]) => newsId),
        clicked: items.filter(([, , clicked]) => clicked).map(([, newsId]) => newsId),
      };
    });
  }

  /** Popularity of these articles when last served, at or before a time; those not served by then are left out. */
  popularityAt(newsIds: readonly string[], at: number): Map<string, number> {
    const found = this.database.rows<{ news_id: string; popularity: number }>(
      `SELECT news_id, popularity, max(at) FROM impression
       WHERE at <= ? AND popularity IS NOT NULL AND ${NAMED} GROUP BY news_id`,
      [toUs(at), JSON.stringify(newsIds)],
    );
    return new Map(found.map((row) => [row.news_id, row.popularity]));
  }

  /** Deletes impressions served before a time; returns their number. */
  prune(before: number): number {
    this.views = null;
    return this.database.quickTransaction(() => this.database.run("DELETE FROM impression WHERE at < ?", [toUs(before)]));
  }

  /** Counts one more feed in which an article was viewed, if the counts are cached. */
  private noteView(newsId: string, at: number): void {
    const before = this.views?.get(newsId);
    this.views?.set(newsId, { feeds: (before?.feeds ?? 0) + 1, at: Math.max(before?.at ?? at, at) });
  }

  private known(): Map<string, { feeds: number; at: number }> {
    if (!this.views) {
      const found = this.database.rows<{ news_id: string; feeds: number; at: number }>(
        `SELECT news_id, count(*) AS feeds, max(viewed_at) AS at FROM impression
         WHERE viewed_at IS NOT NULL GROUP BY news_id`,
      );
      this.views = new Map(found.map((row) => [row.news_id, { feeds: row.feeds, at: row.at }]));
    }
    return this.views;
  }
}
