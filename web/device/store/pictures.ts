// Publishers' pictures on this device, which every device has alike, and whether its reader wants to see them.
import { readMessage } from "../wire/forms";
import { type PictureList, type PictureShard, type Pictured, pictureList } from "../wire/pictures";
import type { Bytes } from "../wire/values";
import type { Database } from "./database";
import { listOf } from "./news";
import { PICTURES_HIDDEN, type Preferences } from "./preferences";
import { toUs } from "./rows";

/** Of a shard's hash, in a picture's address, so that one that may have changed has another address. */
const MARK_CHARS = 12;

/** text is the list to the byte, from which its ETag is computed; shards are its hashes; marks are by story. */
export interface StoredPictures {
  readonly text: Uint8Array;
  readonly shards: readonly string[];
  readonly marks: ReadonlyMap<string, string>;
}

/** Shards by the hash of their blob; the list is in use once all of them are here. */
export class PictureStore {
  private known: StoredPictures | null | undefined;
  private hidden: boolean | undefined;

  constructor(
    private readonly database: Database,
    private readonly preferences: Preferences,
  ) {
    database.whenUndone(() => (this.known = this.hidden = undefined));
  }

  /** Whether the reader wants to see them, as is usual. */
  shown(): boolean {
    this.hidden ??= Boolean(this.preferences.get(PICTURES_HIDDEN));
    return !this.hidden;
  }

  /** See them from now on, or no longer: then none are kept, and none are asked for. */
  show(wanted: boolean): void {
    this.database.transaction(() => {
      this.preferences.set(PICTURES_HIDDEN, wanted ? null : true);
      this.hidden = undefined;
      if (!wanted) this.drop();
    });
  }

  /** The list in use. */
  current(): StoredPictures | null {
    if (this.known === undefined) this.known = this.read();
    return this.known;
  }

  /** Whether all its pictures are here. */
  has(shard: PictureShard): boolean {
    return this.database.number("SELECT count(*) FROM picture WHERE shard = ?", [shard.pictures.sha256]) === shard.count;
  }

  /** Keep a shard's pictures, checked before, in one step; none where the reader wants none any more. */
  put(shard: PictureShard, pictures: readonly Pictured[]): void {
    const { sha256 } = shard.pictures;
    this.database.quickTransaction(() => {
      if (!this.shown()) return;
      this.database.run("DELETE FROM picture WHERE shard = ?", [sha256]);
      pictures.forEach(([newsId, content], place) =>
        this.database.run("INSERT INTO picture (shard, place, news_id, picture) VALUES (?, ?, ?, ?)", [
          sha256,
          place,
          newsId,
          content,
        ]),
      );
    });
  }

  /**
   * Let go of what neither the list in use nor this one names, as of lists that were never here whole: so there are never
   * more than two lists' pictures, twice PICTURES_LIMIT_BYTES.
   */
  makeRoom(listing: PictureList): void {
    this.database.quickTransaction(() => this.keepOnly([...hashesOf(listing), ...(this.current()?.shards ?? [])]));
  }

  /**
   * Put a list in use, in one step, and let go of the pictures that it doesn't name. Nothing is done where it isn't here
   * whole, or the reader wants none: both can come about while it is pulled.
   */
  use(listing: PictureList, text: Uint8Array, at: number): void {
    this.database.quickTransaction(() => {
      if (!this.shown() || !listing.shards.every((shard) => this.has(shard))) return;
      this.database.run("INSERT OR REPLACE INTO picture_list (only, listing, kept_at) VALUES (1, ?, ?)", [text, toUs(at)]);
      this.keepOnly(hashesOf(listing));
      this.known = undefined;
    });
  }

  private keepOnly(shards: readonly string[]): void {
    this.database.run("DELETE FROM picture WHERE shard NOT IN (SELECT value FROM json_each(?))", [listOf(shards)]);
  }

  /** Let go of all of them. */
  drop(): void {
    this.database.transaction(() => {
      this.database.run("DELETE FROM picture_list");
      this.database.run("DELETE FROM picture");
      this.known = undefined;
    });
  }

  /** The mark of a story's picture in its address; null where the story has none here, or none is wanted. */
  mark(newsId: string): string | null {
    return (this.shown() && this.current()?.marks.get(newsId)) || null;
  }

  /** A story's picture, of the list in use. */
  content(newsId: string): Bytes | null {
    const mark = this.current()?.marks.get(newsId);
    if (mark === undefined) return null;
    const sql = "SELECT picture FROM picture WHERE news_id = ? AND substr(shard, 1, ?) = ?";
    return this.database.one<{ picture: Bytes }>(sql, [newsId, MARK_CHARS, mark])?.picture ?? null;
  }

  private read(): StoredPictures | null {
    const row = this.database.one<{ listing: Uint8Array }>("SELECT listing FROM picture_list");
    if (!row) return null;
    const shards = hashesOf(readMessage(pictureList, row.listing));
    const rows = this.database.rows<{ news_id: string; shard: string }>(
      "SELECT news_id, shard FROM json_each(?) AS named JOIN picture ON shard = named.value ORDER BY named.key",
      [listOf(shards)],
    );
    const marks = new Map<string, string>();
    for (const { news_id, shard } of rows) if (!marks.has(news_id)) marks.set(news_id, shard.slice(0, MARK_CHARS));
    return { text: row.listing, shards, marks };
  }
}

function hashesOf(listing: PictureList): string[] {
  return listing.shards.map((shard) => shard.pictures.sha256);
}
