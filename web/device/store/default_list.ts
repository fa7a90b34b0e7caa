// The list that every device gets, and which vector shards were pulled: the same for everybody.
import type { Database } from "./database";
import { fromUs, toUs } from "./rows";

/** Ids of the default list in its order; cards and vectors are in the store of news. */
export interface StoredDefaultList {
  readonly etag: string | null;
  readonly release: string;
  readonly encoder: string;
  readonly newsIds: readonly string[];
  readonly keptAt: number;
}

type FrontRow = { etag: string | null; release: string; encoder: string; news_ids: string; kept_at: number };

/** The last default list. The same object is given until another is kept. */
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

  /** Replace the list. */
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

/** Which shards of news vectors were pulled under each encoder, so that a cut-off pull goes on where it was. */
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

  /** A shard was pulled whole. */
  add(encoder: string, name: string, sha256: string): void {
    this.database.run("INSERT OR REPLACE INTO shard (encoder, name, sha256) VALUES (?, ?, ?)", [encoder, name, sha256]);
  }

  /** The encoder all vectors were completed under last; null on a device that never met one. */
  encoder(): string | null {
    return this.database.one<{ encoder: string }>("SELECT encoder FROM encoder")?.encoder ?? null;
  }

  /** A name of this encoder's vectors as they are on this device; null while they are not complete. */
  generation(encoder: string): string | null {
    const row = this.database.one<{ generation: number }>("SELECT generation FROM encoder WHERE encoder = ?", [encoder]);
    return row ? `${encoder}/${row.generation}` : null;
  }

  /** All shards of this encoder were pulled, or none was needed. A later return to another starts anew. */
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
