// What is the same for every device: the default list, the pulled vector shards, and popularity.
import { readMessage } from "../protocol/forms";
import { LIFT_REACH, LIFT_STEP, popularity, type Popularity } from "../protocol/popularity";
import { fromUs, toUs, type Database } from "./database";

/** Ids of the default list in its order; cards and vectors are in the article store. */
export interface StoredDefaultList {
  readonly etag: string | null;
  readonly release: string;
  readonly encoder: string;
  readonly newsIds: readonly string[];
  readonly keptAt: number;
}

type FrontRow = { etag: string | null; release: string; encoder: string; news_ids: string; kept_at: number };

/** The last default list. Returns the same object until another list is stored. */
export class DefaultListStore {
  private known: StoredDefaultList | null | undefined;

  constructor(private readonly database: Database) {
    database.whenUndone(() => (this.known = undefined));
  }

  /** The list, or null before the first sync. */
  current(): StoredDefaultList | null {
    if (this.known === undefined) {
      const row = this.database.one<FrontRow>("SELECT etag, release, encoder, news_ids, kept_at FROM front");
      this.known = row
        ? {
            etag: row.etag,
            release: row.release,
            encoder: row.encoder,
            newsIds: JSON.parse(row.news_ids) as string[],
            keptAt: fromUs(row.kept_at),
          }
        : null;
    }
    return this.known;
  }

  /** Replaces the list. */
  keep(list: StoredDefaultList): void {
    this.database.transaction(() => {
      this.database.run(
        `INSERT OR REPLACE INTO front (only, etag, release, encoder, news_ids, kept_at) VALUES (1, ?, ?, ?, ?, ?)`,
        [list.etag, list.release, list.encoder, JSON.stringify(list.newsIds), toUs(list.keptAt)],
      );
      this.known = undefined;
    });
  }
}

/** Which shards of article vectors were pulled for each encoder, so that an interrupted pull can resume. */
export class PulledShards {
  constructor(private readonly database: Database) {}

  /** Hash by shard name. */
  pulled(encoder: string): Map<string, string> {
    const rows = this.database.rows<{ name: string; sha256: string }>(
      "SELECT name, sha256 FROM shard WHERE encoder = ?",
      [encoder],
    );
    return new Map(rows.map((row) => [row.name, row.sha256]));
  }

  /** Records that a shard was pulled completely. */
  add(encoder: string, name: string, sha256: string): void {
    this.database.run("INSERT OR REPLACE INTO shard (encoder, name, sha256) VALUES (?, ?, ?)", [encoder, name, sha256]);
  }

  /** The encoder for which all vectors were last completed; null if there was none. */
  encoder(): string | null {
    return this.database.one<{ encoder: string }>("SELECT encoder FROM encoder")?.encoder ?? null;
  }

  /** Returns the name of this encoder's vectors as stored on this device; null while they are incomplete. */
  generation(encoder: string): string | null {
    const row = this.database.one<{ generation: number }>("SELECT generation FROM encoder WHERE encoder = ?", [encoder]);
    return row ? `${encoder}/${row.generation}` : null;
  }

  /**
   * Records that all shards of this encoder were pulled, or none was needed. Returning to another encoder later starts
   * over.
   */
  setComplete(encoder: string, at: number): void {
    this.database.transaction(() => {
      const before = this.database.number("SELECT coalesce(max(generation) + 1, 0) FROM encoder");
      this.database.run("DELETE FROM encoder");
      this.database.run("INSERT INTO encoder (encoder, complete_at, generation) VALUES (?, ?, ?)", [
        encoder,
        toUs(at),
        before,
      ]);
      this.database.run("DELETE FROM shard");
    });
  }
}

/** content: the answer's exact bytes, from which its ETag is computed; values: its lifts, from -1 to 1. */
export interface StoredPopularity {
  readonly received: Popularity;
  readonly content: Uint8Array;
  readonly keptAt: number;
  readonly values: ReadonlyMap<string, number>;
}

/** The last popularity answer; read once, then cached. */
export class PopularityStore {
  private known: StoredPopularity | null | undefined;

  constructor(private readonly database: Database) {
    database.whenUndone(() => (this.known = undefined));
  }

  /** The current answer; null before the first. */
  current(): StoredPopularity | null {
    if (this.known === undefined) this.known = this.read();
    return this.known;
  }

  /** Stores a checked answer as the current one. */
  keep(content: Uint8Array, at: number): void {
    this.database.quickTransaction(() => {
      this.database.run("INSERT OR REPLACE INTO popularity (only, content, kept_at) VALUES (1, ?, ?)", [content, toUs(at)]);
      this.known = undefined;
    });
  }

  private read(): StoredPopularity | null {
    const row = this.database.one<{ content: Uint8Array; kept_at: number }>("SELECT content, kept_at FROM popularity");
    if (!row) return null;
    const received = readMessage(popularity, row.content);
    const values = new Map(received.news.map((id, at) => [id, ((received.lifts[at] as number) * LIFT_STEP) / LIFT_REACH]));
    return { received, content: row.content, keptAt: fromUs(row.kept_at), values };
  }
}
