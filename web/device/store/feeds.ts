// Built feeds: the current one survives a reload, and earlier ones can be shown again.
import { fromUs, toUs, type Database } from "./database";

export const FEEDS_KEPT = 100;

/** A feed's JSON, read and written by feed/recent_feeds.ts. madeAt: milliseconds since 1970. */
export interface StoredFeed {
  readonly feedId: string;
  readonly madeAt: number;
  readonly content: string;
}

type FeedRow = { feed_id: string; made_at: number; content: string };
const COLUMNS = "feed_id, made_at, content";

/** The last hundred feeds. */
export class FeedStore {
  constructor(private readonly database: Database) {}

  /** Stores a feed, replacing one of the same id; only the last hundred are kept. */
  save(feed: StoredFeed): void {
    this.database.quickTransaction(() => {
      const insert = `INSERT OR REPLACE INTO feed (${COLUMNS}) VALUES (?, ?, ?)`;
      this.database.run(insert, [feed.feedId, toUs(feed.madeAt), feed.content]);
      this.database.run(
        `DELETE FROM feed WHERE feed_id NOT IN
         (SELECT feed_id FROM feed ORDER BY made_at DESC, rowid DESC LIMIT ?)`,
        [FEEDS_KEPT],
      );
    });
  }

  /** The newest feed, or null. */
  last(): StoredFeed | null {
    return feedOf(this.database.one<FeedRow>(`SELECT ${COLUMNS} FROM feed ORDER BY made_at DESC, rowid DESC LIMIT 1`));
  }

  /** One feed, if it is still kept. */
  get(feedId: string): StoredFeed | null {
    return feedOf(this.database.one<FeedRow>(`SELECT ${COLUMNS} FROM feed WHERE feed_id = ?`, [feedId]));
  }

  /** Ids of the feeds before and after one; null at either end, and for one that isn't kept. */
  beside(feedId: string): { before: string | null; after: string | null } {
    const found = this.database.one<{ before: string | null; after: string | null }>(
      `SELECT before, after FROM (
         SELECT feed_id, lag(feed_id) OVER made AS before, lead(feed_id) OVER made AS after
         FROM feed WINDOW made AS (ORDER BY made_at, rowid))
       WHERE feed_id = ?`,
      [feedId],
    );
    return found ?? { before: null, after: null };
  }

  /** Feeds whose JSON contains any of these ids. */
  naming(newsIds: Iterable<string>): StoredFeed[] {
    const found = this.database.rows<FeedRow>(
      `SELECT ${COLUMNS} FROM feed
       WHERE EXISTS (SELECT 1 FROM json_each(?) WHERE instr(content, json_quote(value)))`,
      [JSON.stringify([...newsIds].sort())],
    );
    return found.map((row) => feedOf(row)).filter((feed) => feed !== null);
  }

  /** Replaces a kept feed's JSON in place; does nothing if it isn't kept. */
  rewrite(feed: StoredFeed): void {
    const sql = "UPDATE feed SET content = ? WHERE feed_id = ?";
    this.database.quickTransaction(() => this.database.run(sql, [feed.content, feed.feedId]));
  }

  drop(feedId: string): void {
    this.database.quickTransaction(() => this.database.run("DELETE FROM feed WHERE feed_id = ?", [feedId]));
  }
}

function feedOf(row: FeedRow | undefined): StoredFeed | null {
  return row ? { feedId: row.feed_id, madeAt: fromUs(row.made_at), content: row.content } : null;
}
