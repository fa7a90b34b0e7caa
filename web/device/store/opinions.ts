// The reader's explicit feedback: liked, less of this, saved; followed and blocked.
import { fromUs, toUs, type Database, type LazyDatabase } from "./database";

export const REACTION_KINDS = ["like", "less", "save"] as const;
export type ReactionKind = (typeof REACTION_KINDS)[number];
export const STANCE_KINDS = ["topic", "section", "publisher"] as const;
export type StanceKind = (typeof STANCE_KINDS)[number];
export type Stance = "follow" | "block";
/** In the second view's store: deletes the vectors of topics that are no longer followed. */
export const FORGET_UNFOLLOWED = `DELETE FROM meaning WHERE kind = 'topic'
  AND name NOT IN (SELECT name FROM stance WHERE kind = 'topic' AND stance = 'follow')`;
const OPPOSITE: Readonly<Partial<Record<ReactionKind, ReactionKind>>> = { like: "less", less: "like" };

/** One reaction to an article; at: milliseconds since 1970. */
export interface Reaction {
  readonly newsId: string;
  readonly kind: ReactionKind;
  readonly at: number;
}

/** Reactions to articles; 'like' and 'less' exclude each other. */
export class Feedback {
  constructor(private readonly database: Database) {}

  /** Stores a reaction; repeating it keeps the first time. */
  react(newsId: string, kind: ReactionKind, at: number): void {
    this.database.transaction(() => {
      const other = OPPOSITE[kind];
      if (other) this.database.run("DELETE FROM reaction WHERE news_id = ? AND kind = ?", [newsId, other]);
      const insert = "INSERT INTO reaction (news_id, kind, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
      this.database.run(insert, [newsId, kind, toUs(at)]);
    });
  }

  /** Removes a reaction; false if there was none. */
  retract(newsId: string, kind: ReactionKind): boolean {
    const sql = "DELETE FROM reaction WHERE news_id = ? AND kind = ?";
    return this.database.transaction(() => this.database.run(sql, [newsId, kind]) > 0);
  }

  /** All reactions (or those of one kind), newest first. */
  reactions(kind: ReactionKind | null = null): Reaction[] {
    const found = this.database.rows<{ news_id: string; kind: ReactionKind; at: number }>(
      "SELECT news_id, kind, at FROM reaction WHERE ?1 IS NULL OR kind = ?1 ORDER BY at DESC, news_id",
      [kind],
    );
    return found.map((row) => ({ newsId: row.news_id, kind: row.kind, at: fromUs(row.at) }));
  }

  /** Kinds of reaction by article id. */
  kinds(): Map<string, ReactionKind[]> {
    const found = new Map<string, ReactionKind[]>();
    for (const { newsId, kind } of this.reactions()) found.set(newsId, [...(found.get(newsId) ?? []), kind]);
    return found;
  }
}

export interface NamedStance {
  readonly kind: StanceKind;
  readonly name: string;
  readonly stance: Stance;
  readonly at: number;
}

/** Topics, sections and publishers that the reader follows or blocks, in the second view's store. */
export class Stances {
  constructor(private readonly database: LazyDatabase) {}

  /** Follows or blocks a name; null removes the stance. A topic's vector is deleted when it is no longer followed. */
  set(kind: StanceKind, name: string, stance: Stance | null, at: number): void {
    this.database.transaction(() => {
      if (stance === null) this.database.run("DELETE FROM stance WHERE kind = ? AND name = ?", [kind, name]);
      else {
        this.database.run(
          `INSERT INTO stance (kind, name, stance, at) VALUES (?, ?, ?, ?)
           ON CONFLICT (kind, name) DO UPDATE SET stance = excluded.stance, at = excluded.at`,
          [kind, name, stance, toUs(at)],
        );
      }
      this.database.run(FORGET_UNFOLLOWED);
    });
  }

  /** All of them, by kind and name. */
  all(): NamedStance[] {
    const sql = "SELECT kind, name, stance, at FROM stance ORDER BY kind, name";
    const found = this.database.rows<{ kind: StanceKind; name: string; stance: Stance; at: number }>(sql);
    return found.map((row) => ({ ...row, at: fromUs(row.at) }));
  }

  followed(): NamedStance[] {
    return this.all().filter(({ stance }) => stance === "follow");
  }

  /** Followed topics, by name. */
  followedTopics(): NamedStance[] {
    return this.followed().filter(({ kind }) => kind === "topic");
  }

  blocked(): NamedStance[] {
    return this.all().filter(({ stance }) => stance === "block");
  }

  /** 'follow', 'block' or null. */
  of(kind: StanceKind, name: string): Stance | null {
    return this.all().find((one) => one.kind === kind && one.name === name)?.stance ?? null;
  }
}
