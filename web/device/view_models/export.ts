// Everything this device keeps, as one JSON document for its reader, as the Python device writes it.
import { momentOf } from "../moments";
import type { Database, Row, Value } from "../store/database";

/** Vectors and texts of news say nothing about the reader that their ids don't say, and would be most of the bytes. */
const LEFT_OUT: ReadonlySet<string> = new Set(["vector", "body", "unindexed"]);

/** Every table by name, each row by column; blobs in base64, times as microseconds since 1970 (UTC). now: in ms. */
export function exportAll(database: Database, profile: string, now: number): Record<string, unknown> {
  // only plain tables: those of the word index hold nothing but the news again
  const plain = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name";
  const names = database.rows<{ name: string }>(plain).map((row) => row.name);
  const shown = names.filter((name) => !/^(?:_yoyo|yoyo|sqlite_)/.test(name) && !LEFT_OUT.has(name));
  const table = (name: string) => database.rows(`SELECT * FROM ${name}`).map(row);
  return {
    profile,
    exported_at: momentOf(now),
    tables: Object.fromEntries(shown.map((name) => [name, table(name)])),
    views: {},
  };
}

function row(found: Row): Record<string, unknown> {
  return Object.fromEntries(Object.entries(found).map(([column, value]) => [column, plainOf(value)]));
}

function plainOf(value: Value): unknown {
  if (value instanceof Uint8Array) return btoa(Array.from(value, (byte) => String.fromCharCode(byte)).join(""));
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "string" && /^[{[]/.test(value)) {
    try {
      return JSON.parse(value);
    } catch {
      return value;
    }
  }
  return value;
}
