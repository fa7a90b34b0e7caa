// Which stories the reader has read: opened here, or marked as read. A mark is not a click: it teaches the ranking
// nothing and never leaves the device.
import { toUs, type Database } from "./database";
import { listOf } from "./news";

/** The batch of stories that were opened. Marks have higher numbers. */
const OPENED = 0;

/**
 * The ids of read stories, each with the time at which it was first read. A click marks its story as read by a trigger,
 * and deleting the click undoes it.
 */
export class ReadMarks {
  constructor(private readonly database: Database) {}

  has(newsId: string): boolean {
    return this.database.one("SELECT 1 FROM read_story WHERE news_id = ?", [newsId]) !== undefined;
  }

  /** Ids of all read stories. */
  ids(): Set<string> {
    return new Set(this.database.rows<{ news_id: string }>("SELECT news_id FROM read_story").map((row) => row.news_id));
  }

  /** The events of all read stories that are here, and the ids of articles that list one of them. */
  events(): Set<string> {
    type Row = { story: string | null; lead: string | null };
    const found = this.database.rows<Row>("SELECT story, lead FROM read_story JOIN article ON id = news_id");
    return new Set(found.flatMap(({ story, lead }) => [story ?? "", lead ?? ""]).filter((name) => name));
  }

  /** Number of stories first read after a moment. */
  countSince(moment: number): number {
    return this.database.number("SELECT count(*) FROM read_story WHERE at > ?", [toUs(moment)]);
  }

  /** Marks a story as read because it was opened, perhaps again; its click is recorded elsewhere. */
  opened(newsId: string, at: number): void {
    this.put([newsId], at, OPENED);
  }

  /** Marks stories as read; returns the number of this mark, for `undo`, or 0 if all were read already. */
  mark(newsIds: readonly string[], at: number): number {
    return this.database.transaction(() => {
      const unread = this.database.rows<{ value: string }>(
        "SELECT DISTINCT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM read_story WHERE news_id = value)",
        [listOf(newsIds)],
      );
      return unread.length ? this.put(unread.map(({ value }) => value), at, this.nextBatch()) : 0;
    });
  }

  /** Marks stories as unread; clicks on them stay in the history. */
  unmark(newsIds: readonly string[]): void {
    this.database.transaction(() => {
      for (const newsId of newsIds) this.database.run("DELETE FROM read_story WHERE news_id = ?", [newsId]);
    });
  }

  /** Marks the stories of a mark as unread again; returns their number. */
  undo(batch: number): number {
    if (batch === OPENED) return 0;
    return this.database.transaction(() => this.database.run("DELETE FROM read_story WHERE batch = ?", [batch]));
  }

  /** Number of stories that count as read because of this mark. */
  size(batch: number): number {
    return batch === OPENED ? 0 : this.database.number("SELECT count(*) FROM read_story WHERE batch = ?", [batch]);
  }

  /** Adds rows of another device. All its marks get one new number here, since their numbers may already be in use. */
  takeOver(rows: Iterable<{ readonly news_id: string; readonly at: number; readonly batch: number }>): void {
    const batch = this.nextBatch();
    for (const row of rows)
      this.database.run("INSERT INTO read_story (news_id, at, batch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [
        row.news_id,
        row.at,
        row.batch === OPENED ? OPENED : batch,
      ]);
  }

  /** Deletes marks from before a time on stories that are no longer here. */
  prune(before: number): void {
    this.database.run(
      `DELETE FROM read_story WHERE at < ? AND NOT EXISTS (SELECT 1 FROM article WHERE id = news_id)
       AND NOT EXISTS (SELECT 1 FROM click WHERE click.news_id = read_story.news_id)`,
      [toUs(before)],
    );
  }

  private nextBatch(): number {
    return 1 + this.database.number("SELECT max(batch) FROM read_story");
  }

  private put(newsIds: readonly string[], at: number, batch: number): number {
    const insert = "INSERT INTO read_story (news_id, at, batch) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    for (const newsId of newsIds) this.database.run(insert, [newsId, toUs(at), batch]);
    return batch;
  }
}
