// Publishers' pictures on this device, the same on every device, and whether its reader wants to see them.
import { readMessage, type Bytes } from "../protocol/forms";
import { type PictureList, type PictureShard, type Pictured, pictureList } from "../protocol/pictures";
import { toUs, type Database } from "./database";
import { listOf } from "./news";
import { PICTURES_HIDDEN, type Preferences } from "./preferences";

/** Characters of a shard's hash in a picture's address, so that a possibly changed picture has another address. */
const MARK_CHARS = 12;

/** text: the list's exact bytes, from which its ETag is computed; shards: their hashes. */
export interface StoredPictures {
  readonly text: Uint8Array;
  readonly shards: readonly string[];
  /** Marks by `named`. */
  readonly marks: ReadonlyMap<string, string>;
}

/** Shards by their blob's hash; a list becomes current once all its shards are here. */
export class PictureStore {
  private known: StoredPictures | null | undefined;
  private hidden: boolean | undefined;

  constructor(
    private readonly database: Database,
    private readonly preferences: Preferences,
  ) {
    database.whenUndone(() => (this.known = this.hidden = undefined));
  }

  /** Whether the reader wants to see pictures, which is the default. */
  shown(): boolean {
    this.hidden ??= Boolean(this.preferences.get(PICTURES_HIDDEN));
    return !this.hidden;
  }

  /** Shows pictures from now on, or not: then none are stored or requested. */
  show(wanted: boolean): void {
    this.database.transaction(() => {
      this.preferences.set(PICTURES_HIDDEN, wanted ? null : true);
      this.hidden = undefined;
      if (!wanted) this.drop();
    });
  }

  /** The current list. */
  current(): StoredPictures | null {
    if (this.known === undefined) this.known = this.read();
    return this.known;
  }

  /** Whether all of its pictures are here. */
  has(shard: PictureShard): boolean {
    return this.database.number("SELECT count(*) FROM picture WHERE shard = ?", [shard.pictures.sha256]) === shard.count;
  }

  /** Stores a shard's checked pictures in one transaction; nothing if the reader no longer wants any. */
  put(shard: PictureShard, pictures: readonly Pictured[]): void {
    const { sha256 } = shard.pictures;
    this.database.quickTransaction(() => {
      if (!this.shown()) return;
      this.database.run("DELETE FROM picture WHERE shard = ?", [sha256]);
      pictures.forEach(([newsId, ofText, content], place) =>
        this.database.run("INSERT INTO picture (shard, place, news_id, of_text, picture) VALUES (?, ?, ?, ?, ?)", [
          sha256,
          place,
          newsId,
          ofText,
          content,
        ]),
      );
    });
  }

  /**
   * Deletes pictures that neither the current list nor this one names, such as those of lists never completed, so that
   * at most two lists' pictures are stored (twice PICTURES_LIMIT_BYTES).
   */
  makeRoom(listing: PictureList): void {
    this.database.quickTransaction(() => this.keepOnly([...hashesOf(listing), ...(this.current()?.shards ?? [])]));
  }

  /**
   * Makes a list current and deletes the pictures it doesn't name, in one transaction. Does nothing if the list isn't
   * complete here, or the reader wants none; either may happen during the pull.
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

  /** Deletes all pictures. */
  drop(): void {
    this.database.transaction(() => {
      this.database.run("DELETE FROM picture_list");
      this.database.run("DELETE FROM picture");
      this.known = undefined;
    });
  }

  /**
   * The mark of a story's picture in its address; null if the story has none here, or none is wanted. ofText: 0 for the
   * card's, else its number in the text.
   */
  mark(newsId: string, ofText = 0): string | null {
    return (this.shown() && this.current()?.marks.get(named(newsId, ofText))) || null;
  }

  /** A story's picture from the current list. */
  content(newsId: string, ofText = 0): Bytes | null {
    const mark = this.current()?.marks.get(named(newsId, ofText));
    if (mark === undefined) return null;
    const sql = "SELECT picture FROM picture WHERE news_id = ? AND of_text = ? AND substr(shard, 1, ?) = ?";
    return this.database.one<{ picture: Bytes }>(sql, [newsId, ofText, MARK_CHARS, mark])?.picture ?? null;
  }

  private read(): StoredPictures | null {
    const row = this.database.one<{ listing: Uint8Array }>("SELECT listing FROM picture_list");
    if (!row) return null;
    const shards = hashesOf(readMessage(pictureList, row.listing));
    const rows = this.database.rows<{ news_id: string; of_text: number; shard: string }>(
      `SELECT news_id, of_text, shard FROM json_each(?) AS named JOIN picture ON shard = named.value
       ORDER BY named.key`,
      [listOf(shards)],
    );
    const marks = new Map<string, string>();
    for (const { news_id, of_text, shard } of rows) {
      const name = named(news_id, of_text);
      if (!marks.has(name)) marks.set(name, shard.slice(0, MARK_CHARS));
    }
    return { text: row.listing, shards, marks };
  }
}

const named = (newsId: string, ofText: number) => `${newsId} ${ofText}`;

function hashesOf(listing: PictureList): string[] {
  return listing.shards.map((shard) => shard.pictures.sha256);
}
