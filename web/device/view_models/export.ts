// Everything this device keeps, as one JSON document for its reader, as the Python device writes it.
import { momentOf } from "../moments";
import type { DeviceStores } from "../parts";
import type { Database, Row, Value } from "../store/database";
import { VERSION } from "../store/exported";
import { MOVED_SEARCHES } from "../store/moved_searches";

/**
 * What hangs on this very file; the keys of a round under way, which are for nobody to keep; and the pool's codes and
 * cards, and publishers' pictures: they are everybody's alike, may be a hundred megabytes, and are pulled again by whoever
 * wants them.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "unindexed",
  "sum_part",
  "pool",
  "pool_part",
  "pool_card",
  "pool_indexed",
  "picture_list",
  "picture",
]);
/** Of news that the reader opened or reacted to alone: those of all others would be most of the bytes. */
const OF_NEWS = "news_id IN (SELECT news_id FROM click UNION SELECT news_id FROM reaction)";
/** Rows of tables that don't go whole. Searches on their way into another view's file are none of this one's. */
const WHICH: Readonly<Record<string, string>> = {
  vector: OF_NEWS,
  body: OF_NEWS,
  preference: `name <> '${MOVED_SEARCHES}'`,
};
/**
 * Of the log of requests the newest bodies up to this sum: of earlier ones the line stays, with length and hash. Masked
 * vectors of rounds are most of the log's 64 MiB, and as many again would pass what another device takes over.
 */
const BODIES_BYTES = 8 * 1024 * 1024;
const UPTO = "sum(length(body)) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)";
/** What is written for a column, where that isn't its value. */
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
 * Every table by name, each row by column; blobs in base64, times as microseconds since 1970 (UTC). Another device takes it
 * over (moving.ts). now: in ms since 1970.
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
  // only plain tables: those of the word index hold nothing but the news again
  const plain = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name";
  const names = database.rows<{ name: string }>(plain).map((row) => row.name);
  const shown = names.filter((name) => !/^(?:_yoyo|yoyo|sqlite_)/.test(name) && !LEFT_OUT.has(name));
  const written = (name: string) => {
    const columns = database.rows<{ name: string }>("SELECT name FROM pragma_table_info(?) ORDER BY cid", [name]);
    return columns.map((column) => (INSTEAD_OF[`${name}.${column.name}`] ?? column.name) + ` AS ${column.name}`).join(", ");
  };
  const table = (name: string) => database.rows(`SELECT ${written(name)} FROM ${name} WHERE ${WHICH[name] ?? "true"}`).map(row);
  return Object.fromEntries(shown.map((name) => [name, table(name)]));
}

function row(found: Row): Record<string, unknown> {
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
