// Lists and counts of all articles with a card on this device: of its lists and of the pool's copy.
//
// The table `article` is kept by triggers, so nothing here writes to it.
import { toUs, type Database } from "./database";
import { listOf, type Naming } from "./news";

const KINDS = ["topic", "section", "publisher"] as const;
const ANY_NAME = KINDS.map((kind) => `${kind} IN (SELECT value FROM json_each(?))`).join(" OR ");

/** Another publisher's report of an event. here: whether it can be opened. */
export interface Source {
  readonly publisher: string;
  readonly id: string;
  readonly here: boolean;
}

/** The fields of a card that are needed to find the other reports of its event. */
export interface Reported {
  readonly story?: string | null;
  readonly publisher: string;
  readonly also: readonly { readonly id: string }[];
}

const SOURCES_SHOWN = 5;
const RATE_WEEKS = 4;
const WEEK_US = 7 * 86_400 * 1_000_000;

/** A kind of name, and the name. */
interface Named {
  readonly kind: Naming;
  readonly name: string;
}

/** Finds articles by publisher, section or topic. */
export class Articles {
  constructor(private readonly database: Database) {}

  /**
   * Ids of all articles that have one of these names and none of the others, newest first. events: only the newest of
   * those that report one event.
   */
  byName(names: Iterable<Named>, without: Iterable<Named> = [], { events = false } = {}): string[] {
    const sql = `SELECT id, story FROM article WHERE hidden_by IS NULL AND (${ANY_NAME}) AND NOT (${ANY_NAME}) ORDER BY published_at DESC, id DESC`;
    const seen = new Set<string>();
    const found = this.database.rows<{ id: string; story: string | null }>(sql, [...byKind(names), ...byKind(without)]);
    return found.flatMap(({ id, story }) => {
      if (events && story && seen.has(story)) return [];
      if (story) seen.add(story);
      return [id];
    });
  }

  /** The article whose card lists each of these articles, for those without their own card. */
  leads(newsIds: Iterable<string>): Map<string, string> {
    const sql = "SELECT id, lead FROM article WHERE lead IS NOT NULL AND id IN (SELECT value FROM json_each(?))";
    return new Map(this.database.rows<{ id: string; lead: string }>(sql, [listOf(newsIds)]).map(({ id, lead }) => [id, lead]));
  }

  /** The newest report of each other publisher on a card's event, newest first. */
  otherSources(card: Reported): Source[] {
    const found = this.database.rows<{ publisher: string; id: string; here: number }>(
      `SELECT publisher, id, EXISTS (SELECT 1 FROM news WHERE news.id = article.id) AS here FROM article
       WHERE (story = ? OR id IN (SELECT value FROM json_each(?))) AND publisher NOT IN ('', ?) AND hidden_by IS NULL
       ORDER BY published_at DESC, id DESC`,
      [card.story ?? null, listOf(card.also.map((one) => one.id)), card.publisher],
    );
    const newest = new Map<string, Source>();
    for (const { publisher, id, here } of found)
      if (!newest.has(publisher)) newest.set(publisher, { publisher, id, here: here === 1 });
    return [...newest.values()].slice(0, SOURCES_SHOWN);
  }

  /**
   * How many articles a week each publisher with articles here has published recently. Counts the last four weeks, or
   * less if the oldest article here is younger, but at least one week. now: milliseconds since 1970.
   */
  aWeek(now: number): Map<string, number> {
    const nowUs = toUs(now);
    const oldest = this.database.number("SELECT min(published_at) FROM article WHERE published_at > 0");
    const weeks = Math.min(Math.max((nowUs - oldest) / WEEK_US, 1), RATE_WEEKS);
    const found = this.database.rows<{ publisher: string; count: number }>(
      "SELECT publisher, sum(published_at > ?) AS count FROM article GROUP BY publisher",
      [nowUs - Math.trunc(weeks * WEEK_US)],
    );
    return new Map(found.map(({ publisher, count }) => [publisher, count / weeks]));
  }

  /** Number of articles of each topic, by `WordMatch.topic`. */
  topicSizes(): Map<string, number> {
    const found = this.database.rows<{ topic: string; count: number }>(
      `SELECT iif(topic = '', '', json_array(section, topic)) AS topic, sum(count) AS count
       FROM (SELECT section, topic, count(*) AS count FROM article WHERE lead IS NULL GROUP BY section, topic) GROUP BY 1`,
    );
    return new Map(found.map(({ topic, count }) => [topic, count]));
  }

  /** Number of articles of a topic, section or publisher. */
  countByName(kind: Naming, name: string): number {
    return this.database.number(`SELECT count(*) FROM article WHERE hidden_by IS NULL AND ${kind} = ?`, [name]);
  }
}

/** The values of ANY_NAME. */
function byKind(names: Iterable<Named>): string[] {
  const all = [...names];
  return KINDS.map((kind) => listOf(all.filter((one) => one.kind === kind).map(({ name }) => name)));
}
