// The reader's mute rules, and which articles they hide.
import { readMessage } from "../protocol/forms";
import { newsCard, type NewsCard } from "../protocol/news";
import { toUs, type Database } from "./database";
import { listOf, reportOf } from "./news";

const RULES_LIMIT = 200;
const BATCH = 200;
export const RULE_FIELDS = ["anywhere", "title", "text", "publisher", "address"] as const;
export type RuleField = (typeof RULE_FIELDS)[number];
export type RuleKind = "word" | "phrase" | "regex";

/** One rule: articles whose field matches the pattern are hidden everywhere. */
export interface MuteRule {
  readonly id: number;
  readonly field: RuleField;
  readonly kind: RuleKind;
  readonly pattern: string;
}

/** Returns the id of the first rule that hides an article, given its card and its text ('' if it isn't here). */
export type Judge = (card: NewsCard, body: string) => number | null;

/** The maximum number of rules is reached. */
export class TooManyRules extends Error {}

/** Rules by id, in the order in which they were made. */
export class MuteRules {
  constructor(private readonly database: Database) {}

  all(): MuteRule[] {
    return this.database.rows<MuteRule>("SELECT id, field, kind, pattern FROM mute_rule ORDER BY id");
  }

  /** Stores a rule; it is applied to every article. Throws TooManyRules. */
  put(field: RuleField, kind: RuleKind, pattern: string, at: number): void {
    this.database.transaction(() => {
      if (this.database.number("SELECT count(*) FROM mute_rule") >= RULES_LIMIT)
        throw new TooManyRules(`at most ${RULES_LIMIT} rules are allowed: remove one first`);
      const insert = "INSERT INTO mute_rule (field, kind, pattern, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
      this.database.run(insert, [field, kind, pattern, toUs(at)]);
      this.database.run(
        "INSERT INTO unjudged (news_id) SELECT id FROM article WHERE hidden_by IS NULL ON CONFLICT DO NOTHING",
      );
    });
  }

  /** Deletes a rule and shows what it hid, unless another rule hides it; null if there was none. */
  delete(id: number): MuteRule | null {
    return this.database.transaction(() => {
      const deleted = this.all().find((rule) => rule.id === id);
      if (!deleted) return null;
      this.database.run("DELETE FROM mute_rule WHERE id = ?", [id]);
      const again = "INSERT INTO unjudged (news_id) SELECT id FROM article WHERE hidden_by = ? ON CONFLICT DO NOTHING";
      this.database.run(again, [id]);
      return deleted;
    });
  }

  /** Applies rules to some articles that were not checked yet; returns how many. */
  judge(judge: Judge): number {
    return this.database.quickTransaction(() => {
      const rows = this.database.rows<{ id: string; card: string | null; body: string; lead: string | null }>(
        `SELECT unjudged.news_id AS id, coalesce(news.card, pool_card.card, lead.card, pool_lead.card) AS card,
           coalesce(body.body, '') AS body, article.lead AS lead
         FROM (SELECT news_id FROM unjudged LIMIT ?) AS unjudged
         LEFT JOIN news ON news.id = unjudged.news_id LEFT JOIN body ON body.news_id = unjudged.news_id
         LEFT JOIN pool_card ON pool_card.id = unjudged.news_id AND news.id IS NULL
         LEFT JOIN article ON article.id = unjudged.news_id
         LEFT JOIN news AS lead ON lead.id = article.lead
         LEFT JOIN pool_card AS pool_lead ON pool_lead.id = article.lead AND lead.id IS NULL`,
        [BATCH],
      );
      for (const { id, card: text, body, lead } of rows) {
        const read = text === null ? null : readMessage(newsCard, text);
        const card = read && lead !== null ? reportOf(read, id) : read;
        if (card) this.database.run("UPDATE article SET hidden_by = ? WHERE id = ?", [judge(card, body), id]);
        this.database.run("DELETE FROM unjudged WHERE news_id = ?", [id]);
      }
      return rows.length;
    });
  }

  /** Ids of all hidden articles. */
  hidden(): Set<string> {
    return this.ids("SELECT id FROM article WHERE hidden_by IS NOT NULL", []);
  }

  /** Those of these articles that are hidden. */
  hiddenAmong(newsIds: Iterable<string>): Set<string> {
    const sql = "SELECT id FROM article WHERE hidden_by IS NOT NULL AND id IN (SELECT value FROM json_each(?))";
    return this.ids(sql, [listOf(newsIds)]);
  }

  /** How many articles published since a time each rule hides, by rule. */
  counts(since: number): Map<number, number> {
    const found = this.database.rows<{ rule: number; count: number }>(
      `SELECT hidden_by AS rule, count(*) AS count FROM article WHERE hidden_by IS NOT NULL AND published_at >= ?
       GROUP BY hidden_by`,
      [toUs(since)],
    );
    return new Map(found.map(({ rule, count }) => [rule, count]));
  }

  private ids(sql: string, values: readonly string[]): Set<string> {
    return new Set(this.database.rows<{ id: string }>(sql, values).map((row) => row.id));
  }
}
