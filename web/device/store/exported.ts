// Reads and checks another device's export: the rows that a device imports. Names and limits are those of
// device_app/store/exported.py.
//
// The export's searches and stances go to the second view's store, as in device_app/store/exported.py.
import { ExportRefused } from "../errors";
import { HOUR_MS, msOf } from "../protocol/moments";
import { privacySettings, type PrivacySettings } from "../privacy/settings";
import { WireError, byName, bytes, integer, list, literal, moment, nullable, optional, real, record, text, truth, type Form, type ValueOf } from "../protocol/forms";
import { newsId } from "../protocol/ids";
import { newsCard } from "../protocol/news";
import { report } from "../protocol/recall";
import { toUs, type Database, type LazyDatabase } from "./database";
import { RULE_FIELDS } from "./mute_rules";
import { FORGET_UNFOLLOWED, REACTION_KINDS, STANCE_KINDS, type Stance, type StanceKind } from "./opinions";
import { Preferences } from "./preferences";
import { WORDS_LIMIT_CHARS, plainOf } from "./searches";

/** Incremented when an export changes so that older devices can't import it. */
export const VERSION = 2;
export const LIMIT_BYTES = 128 * 2 ** 20;
/** Tolerated difference between two devices' clocks. */
const LEEWAY_MS = HOUR_MS / 6;
/** Maximum number of charges: a dozen a day for ten years. */
const CHARGES_LIMIT = 50_000;
const VECTOR_BYTES_LIMIT = 4 * 4_096;
/**
 * Time columns, by table, that may not be later than the file: a click dated next year would count as the newest, and
 * as current reading, for a year.
 */
const MOMENTS = {
  charge: ["at"],
  report_meaning: ["first_at"],
  click: ["at"],
  impression: ["at", "viewed_at"],
  reaction: ["at"],
  read_story: ["at"],
  mute_rule: ["at"],
  view_round: ["at"],
  round_upload: ["bound_at"],
  drawn_report: ["drawn_at"],
} as const;
const SEARCH_MOMENTS = { stance: ["at"], search: ["saved_at", "looked_at"], opened: ["at"] } as const;

const us = integer({ min: 0 });
const count = integer({ min: 0 });
const name = text({ max: 200 });
const long = text({ max: 200_000 });
const hashOrNone = text({ pattern: /^(?:[0-9a-f]{64})?$/ });

/** Any JSON value. */
const anything: Form<unknown> = { read: (value) => value, write: (value) => JSON.stringify(value) };
const object = byName(anything);

const float32: Form<Uint8Array<ArrayBuffer>> = {
  ...bytes({ min: 4, max: VECTOR_BYTES_LIMIT }),
  read(value) {
    const content = bytes({ min: 4, max: VECTOR_BYTES_LIMIT }).read(value);
    if (content.length % 4) throw new WireError(`must be whole float32 numbers, got ${content.length} bytes`);
    for (const each of new Float32Array(content.buffer))
      if (!Number.isFinite(each)) throw new WireError("has values that are not finite");
    return content;
  },
};

const newsRow = record({ id: newsId, card: newsCard, words: long, shelved_at: us }, ({ id, card }) => {
  if (card.id !== id) throw new WireError(`the card has the id ${card.id}, the row ${id}`);
});

const searchRow = record(
  { id: count, words: text({ min: 1, max: WORDS_LIMIT_CHARS }), saved_at: us, looked_at: us },
  ({ words }) => {
    if (words !== plainOf(words)) throw new WireError("words must have single spaces between them, and none around them");
  },
);

const chargeRow = record({
  id: count,
  at: us,
  channel: literal("reports", "training", "counts"),
  mechanism: name,
  parameters: byName(real({ min: 0 }), { max: 50 }),
  epsilon: real({ min: 0 }),
  delta: real({ min: 0, max: 1 }),
  payload_sha256: hashOrNone,
  subject: name,
});
export type ChargeRow = ValueOf<typeof chargeRow>;

const drawnRow = record({ mechanism: name, book: name, value: integer(), report: object, drawn_at: us }, (row) => {
  report.read(Object.fromEntries(row.report));
});

/** Reads these fields of an object and ignores others. */
function among<F extends Readonly<Record<string, Form<unknown>>>>(fields: F): Form<{ readonly [K in keyof F]: ValueOf<F[K]> }> {
  const known = record(fields);
  return {
    read(value) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WireError("must be an object");
      const shown = Object.entries(value).filter(([field]) => Object.hasOwn(fields, field));
      return known.read(Object.fromEntries(shown));
    },
    write: (value) => known.write(value),
  };
}

const tables = among({
  news: list(newsRow),
  body: list(record({ news_id: newsId, body: long })),
  vector: list(record({ news_id: newsId, encoder: name, float32 })),
  click: list(record({ id: count, news_id: newsId, feed_id: name, at: us })),
  impression: list(
    record({ feed_id: name, news_id: newsId, position: count, at: us, popularity: nullable(real()), viewed_at: nullable(us) }),
  ),
  reaction: list(record({ news_id: newsId, kind: literal(...REACTION_KINDS), at: us })),
  read_story: optional(list(record({ news_id: newsId, at: us, batch: count })), []),
  mute_rule: optional(
    list(
      record({ id: count, field: literal(...RULE_FIELDS), kind: literal("word", "phrase", "regex"), pattern: text({ min: 1, max: 200 }), at: us }),
    ),
    [],
  ),
  charge: list(chargeRow, { max: CHARGES_LIMIT }),
  view_round: list(record({ round: name, view: name, clip: real(), sigma: real({ above: 0 }), at: us })),
  report_meaning: list(record({ meaning: name, first_at: us })),
  round_upload: list(record({ round: name, payload_sha256: hashOrNone, bound_at: us })),
  drawn_report: list(drawnRow),
  preference: list(record({ name, value: anything })),
});

const searches = among({
  stance: list(
    record({ kind: literal(...STANCE_KINDS), name: text({ min: 1, max: 120 }), stance: literal("follow", "block"), at: us }),
  ),
  search: list(searchRow),
  opened: list(record({ news_id: newsId, at: us })),
});
const NO_SEARCHES: ValueOf<typeof searches> = { stance: [], search: [], opened: [] };

const whole = among({
  exported_at: moment,
  tables,
  views: among({ searches: optional(searches, NO_SEARCHES) }),
});

/** The preferences that are moved; null: not set. */
const choices = among({
  privacy: optional(nullable(object), null),
  chosen_sections: optional(nullable(list(name, { max: 200 })), null),
  training_paused: optional(nullable(truth), null),
  pictures_hidden: optional(nullable(truth), null),
  interests: optional(
    list(record({ id: count, name: nullable(text({ max: 60 })), muted: truth, news: list(newsId) })),
    [],
  ),
});

/** One export; settings: the switches changed on the other device. */
export interface Exported extends ValueOf<typeof whole> {
  readonly choices: Omit<ValueOf<typeof choices>, "privacy"> & { readonly privacy: Partial<PrivacySettings> };
}

/** Reads an export. Throws ExportRefused, naming the field and its limit. now: in ms since 1970. */
export function readExport(content: string, now: number): Exported {
  if (new Blob([content]).size > LIMIT_BYTES)
    throw new ExportRefused(`the file has more than ${LIMIT_BYTES / 2 ** 20} MiB, which is the limit`);
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch {
    throw new ExportRefused("the file is not an Ownfeed export (it is not JSON)");
  }
  if ((document as { version?: unknown } | null)?.version !== VERSION)
    throw new ExportRefused(`version: must be ${VERSION}; the file is from another version of Ownfeed, or not an Ownfeed export`);
  const exported = reading(() => whole.read(document));
  const given = new Map(exported.tables.preference.map((row) => [row.name, row.value]));
  const chosen = reading(() => inside(["preference"], () => choices.read(Object.fromEntries(given))));
  const changed = Object.fromEntries(chosen.privacy ?? []);
  const privacy = reading(() => inside(["preference", "privacy"], () => changesOf(changed)));
  if (msOf(exported.exported_at) > now + LEEWAY_MS)
    throw new ExportRefused("exported_at: is later than this device's clock says; set the clock first");
  const latest = toUs(msOf(exported.exported_at) + LEEWAY_MS);
  checkMoments("tables", exported.tables, MOMENTS, latest);
  checkMoments("views.searches", exported.views.searches, SEARCH_MOMENTS, latest);
  return { ...exported, choices: { ...chosen, privacy } };
}

/** Throws ExportRefused for a row dated later than the file. latest: in microseconds since 1970. */
function checkMoments<T extends string>(
  where: string,
  tables: Readonly<Record<T, readonly object[]>>,
  moments: Readonly<Partial<Record<T, readonly string[]>>>,
  latest: number,
): void {
  for (const [table, columns] of Object.entries(moments) as [T, readonly string[]][])
    for (const [place, row] of tables[table].entries())
      for (const column of columns)
        if (((row as Readonly<Record<string, number | null>>)[column] ?? 0) > latest)
          throw new ExportRefused(
            `${where}.${table}.${place}.${column}: is later than exported_at, by more than the ${LEEWAY_MS / 60_000} ` +
              "minutes by which two clocks may differ",
          );
}

/** Articles that the reader opened or reacted to. */
export function touchedBy({ tables: { click, reaction }, views }: Exported): Set<string> {
  return new Set([...click, ...reaction, ...views.searches.opened].map((row) => row.news_id));
}

/** Changed switches, each validated by the settings' form. */
function changesOf(changed: Readonly<Record<string, unknown>>): Partial<PrivacySettings> {
  const settings = privacySettings.read(changed);
  return Object.fromEntries(Object.entries(settings).filter(([field]) => Object.hasOwn(changed, field)));
}

function inside<T>(steps: readonly string[], read: () => T): T {
  try {
    return read();
  } catch (wrong) {
    throw wrong instanceof WireError ? [...steps].reverse().reduce((error, step) => error.within(step), wrong) : wrong;
  }
}

function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (wrong) {
    throw wrong instanceof WireError ? new ExportRefused(wrong.message) : wrong;
  }
}

/** The preference that holds waiting rows: by table, each by column. */
export const MOVED_SEARCHES = "moved_searches";

/** Rows as exported; moments are microseconds since 1970. */
export interface SearchRows {
  readonly stance: readonly { readonly kind: StanceKind; readonly name: string; readonly stance: Stance; readonly at: number }[];
  readonly search: readonly { readonly words: string; readonly saved_at: number; readonly looked_at: number }[];
  readonly opened: readonly { readonly news_id: string; readonly at: number }[];
}

/**
 * Moves searches between two databases that can't share a transaction: the first records what is still to be written to
 * the second.
 *
 * Formal guarantees: what was put in the transaction of `database` is in `searches` once `finish` has run, whatever
 * ended the worker in between; what was rolled back never gets there; nothing of it stays in `database` afterwards, and
 * nothing of it is in exports before.
 */
export class MovedSearches {
  private readonly preferences: Preferences;

  constructor(
    private readonly database: Database,
    private readonly searches: LazyDatabase,
  ) {
    this.preferences = new Preferences(database);
  }

  /** Stores rows, inside the import's transaction. Call it only after `finish`, or rows still waiting are lost. */
  put({ stance, search, opened }: SearchRows): void {
    if (stance.length || search.length || opened.length) this.preferences.set(MOVED_SEARCHES, { stance, search, opened });
  }

  /**
   * Writes waiting rows, if any; if both have a value for the same thing, the later one wins. Called after `put`, and
   * when a device opens.
   */
  finish(): void {
    const rows = this.preferences.get(MOVED_SEARCHES) as SearchRows | null;
    if (rows === null) return;
    const { searches } = this;
    searches.transaction(() => {
      for (const { kind, name, stance, at } of rows.stance)
        searches.run(
          `INSERT INTO stance (kind, name, stance, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE
           SET stance = excluded.stance, at = excluded.at WHERE excluded.at > stance.at`,
          [kind, name, stance, at],
        );
      for (const { words, saved_at, looked_at } of rows.search)
        searches.run(
          `INSERT INTO search (words, saved_at, looked_at) VALUES (?, ?, ?) ON CONFLICT (words) DO UPDATE
           SET looked_at = max(search.looked_at, excluded.looked_at)`,
          [words, saved_at, looked_at],
        );
      for (const { news_id, at } of rows.opened)
        searches.run("INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING", [news_id, at]);
      searches.run(FORGET_UNFOLLOWED);
    });
    this.preferences.set(MOVED_SEARCHES, null);
    this.database.fold();
  }
}
