// Everything this device stores, as one JSON document for its reader, as the Python device writes it.
import { momentOf } from "../protocol/moments";
import type { DeviceStores } from "../parts";
import type { Database, Row, Value } from "../store/database";
import { MOVED_SEARCHES, VERSION } from "../store/exported";

/**
 * Tables that are not exported: technical tables of this file; the keys of a running round, which nobody may keep; and
 * pool codes, cards and publishers' pictures, which are the same for every device, may be a hundred megabytes, and can
 * be downloaded again.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "article",
  "unindexed",
  "unjudged",
  "sum_part",
  "pool",
  "pool_part",
  "pool_card",
  "pool_indexed",
  "picture_list",
  "picture",
]);
/** Only rows for articles that the reader opened or reacted to; all others would be most of the bytes. */
const OF_NEWS = "news_id IN (SELECT news_id FROM click UNION SELECT news_id FROM reaction)";
/**
 * Rows of tables that aren't exported completely. Searches on their way to another view's file aren't part of this one.
 */
const WHICH: Readonly<Record<string, string>> = {
  vector: OF_NEWS,
  body: OF_NEWS,
  preference: `name <> '${MOVED_SEARCHES}'`,
};
/**
 * The newest bodies of the request log up to this total; of earlier ones the entry stays, with length and hash. Masked
 * vectors of rounds are most of the log's 64 MiB, and the whole log would exceed what another device imports.
 */
const BODIES_BYTES = 8 * 1024 * 1024;
const UPTO = "sum(length(body)) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)";
/** What is exported for a column instead of its value. */
const INSTEAD_OF: Readonly<Record<string, string>> = {
  "traffic.body": `CASE WHEN ${UPTO} <= ${BODIES_BYTES} THEN body ELSE x'' END`,
};
/** Columns whose text is JSON. */
const JSON_COLUMNS: ReadonlySet<string> = new Set([
  "card",
  "clear",
  "content",
  "device_ms",
  "manifest",
  "news_ids",
  "parameters",
  "report",
  "server_ms",
  "value",
]);

/**
 * Every table by name, each row by column; blobs in base64, times as microseconds since 1970 (UTC). Another device can
 * import it (moving.ts). now: in ms since 1970.
 */
export function exportAll({ database, searchDatabase }: DeviceStores, profile: string, now: number): Record<string, unknown> {
  const searches = searchDatabase.known();
  return {
    version: VERSION,
    profile,
    exported_at: momentOf(now),
    tables: tablesOf(database),
    views: searches ? { searches: tablesOf(searches) } : {},
  };
}

function tablesOf(database: Database): Record<string, unknown> {
  // only plain tables: those of the word index only repeat the articles
  const plain = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name";
  const names = database.rows<{ name: string }>(plain).map((row) => row.name);
  const shown = names.filter((name) => !/^(?:_yoyo|yoyo|sqlite_)/.test(name) && !LEFT_OUT.has(name));
  const table = (name: string) => rowsOfTable(database, name, WHICH[name] ?? "true").map(exportedRow);
  return Object.fromEntries(shown.map((name) => [name, table(name)]));
}

/** Rows of a table, with the columns of an export. */
export function rowsOfTable(database: Pick<Database, "rows">, name: string, which: string): Row[] {
  const columns = database.rows<{ name: string }>("SELECT name FROM pragma_table_info(?) ORDER BY cid", [name]);
  const written = columns.map((column) => (INSTEAD_OF[`${name}.${column.name}`] ?? column.name) + ` AS ${column.name}`);
  return database.rows(`SELECT ${written.join(", ")} FROM ${name} WHERE ${which}`);
}

/** A row in exported form. */
export function exportedRow(found: Row): Record<string, unknown> {
  return Object.fromEntries(Object.entries(found).map(([column, value]) => [column, plainOf(column, value)]));
}

function plainOf(column: string, value: Value): unknown {
  if (value instanceof Uint8Array) return btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join(""));
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string" && JSON_COLUMNS.has(column)) {
    try {
      return JSON.parse(value);
    } catch {
      return value;
    }
  }
  return value;
}
