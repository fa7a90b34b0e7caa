// The reader's clicks: stored before the article is shown, never sent.
import { PAGE_SIZE, offset, pageOf, toUs, type Database, type Page } from "./database";
import { allWords } from "./searches";

/** An opened article. feedId is empty if it was opened outside a feed; at: milliseconds since 1970. */
export interface Click {
  readonly id: number;
  readonly newsId: string;
  readonly feedId: string;
  readonly at: number;
}

const COLUMNS = "click.id, click.news_id AS newsId, click.feed_id AS feedId, click.at / 1000.0 AS at";

/** Every click of this reader, until the reader deletes it. */
export class Clicks {
  constructor(private readonly database: Database) {}

  /**
   * Stores a click; returns its id once it is on disk. Opening an article twice from one feed is one click; outside
   * feeds, one click in total.
   */
  add(newsId: string, feedId: string | null, at: number): number {
    return this.database.transaction(() => {
      const insert = "INSERT INTO click (news_id, feed_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
      this.database.run(insert, [newsId, feedId ?? "", toUs(at)]);
      return this.database.number("SELECT id FROM click WHERE feed_id = ? AND news_id = ?", [feedId ?? "", newsId]);
    });
  }

  /** The newest clicks, ordered oldest first. */
  recent(limit = 50): Click[] {
    const newest = `SELECT ${COLUMNS} FROM click ORDER BY click.at DESC, click.id DESC LIMIT ?`;
    return this.database.rows<Click>(newest, [limit]).reverse();
  }

  count(): number {
    return this.database.number("SELECT count(*) FROM click");
  }

  /** The highest id ever assigned, even to a click deleted since; shows how many clicks a report is behind. */
  latestId(): number {
    return this.database.number("SELECT seq FROM sqlite_sequence WHERE name = 'click'");
  }

  /** Number of clicks kept with this id or a lower one; it falls when one of them is deleted. */
  countUpTo(clickId: number): number {
    return this.database.number("SELECT count(*) FROM click WHERE id <= ?", [clickId]);
  }

  /** Clicks, newest first, whose card has every word of `text`; all clicks if it is blank. */
  search(text = "", page = 1): Page<Click> {
    const { tests, values } = allWords(text);
    const source = `FROM click LEFT JOIN news ON news.id = click.news_id WHERE ${["1", ...tests].join(" AND ")}`;
    const sql = `SELECT ${COLUMNS} ${source} ORDER BY click.at DESC, click.id DESC LIMIT ? OFFSET ?`;
    const rows = this.database.rows<Click>(sql, [...values, PAGE_SIZE, offset(page)]);
    return pageOf(rows, page, this.database.number(`SELECT count(*) ${source}`, values));
  }

  /** The clicked article's id; null if there is no such click. */
  newsOf(clickId: number): string | null {
    return this.database.one<{ news_id: string }>("SELECT news_id FROM click WHERE id = ?", [clickId])?.news_id ?? null;
  }

  /** Permanently deletes a click; false if there was none. */
  delete(clickId: number): boolean {
    return this.database.transaction(() => this.database.run("DELETE FROM click WHERE id = ?", [clickId]) > 0);
  }

  /** Deletes every click on these articles, when an interest is deleted. */
  deleteNews(newsIds: Iterable<string>): void {
    this.database.transaction(() => {
      for (const newsId of newsIds) this.database.run("DELETE FROM click WHERE news_id = ?", [newsId]);
    });
  }
}
