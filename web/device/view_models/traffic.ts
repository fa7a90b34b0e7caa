// What left this device: its log, with the polls that every device makes alike drawn together. The statements are those of
// device_app/view_models/traffic.py, which also says why.
import { momentOf } from "../moments";
import { LIST_OF_EVERYBODY } from "../privacy/list_texts";
import type { Database, Row } from "../store/database";
import { PAGE_SIZE, fromUs, offset, pageOf } from "../store/rows";
import type { Moment } from "../wire/values";

/** So many polls of a drawn-together line are listed with it. */
const POLLS_LISTED = 10;
export type ShownTraffic = "concerning" | "all";

const LINES = `
  SELECT id, at, words, method, url, status, ms, epsilon, date(at / 1000000, 'unixepoch', 'localtime') AS day,
         length(head) + body_bytes AS sent,
         coalesce(length(response_head), 0) + coalesce(response_bytes, 0) AS received,
         status IS NULL OR status >= 400 AS unanswered,
         epsilon > 0 OR mechanism <> '${LIST_OF_EVERYBODY}' AND (mechanism <> 'nothing' OR method <> 'GET') AS concerns,
         mechanism = '${LIST_OF_EVERYBODY}' OR method = 'GET' AND mechanism IN ('nothing', 'presence') AS is_poll,
         mechanism, body_sha256, CASE mechanism WHEN '${LIST_OF_EVERYBODY}' THEN mechanism ELSE words END AS asked
  FROM traffic`;
const GATHERED = `
  WITH line AS (${LINES}),
       stretch AS (SELECT *, sum(NOT is_poll) OVER (ORDER BY id) AS after FROM line WHERE concerns OR ?1 = 'all'),
       gathered AS (
         SELECT max(id) AS newest, count(*) AS number, min(id) AS oldest, min(at) AS first_at, sum(sent) AS all_sent,
                sum(received) AS all_received, sum(unanswered) AS failures, count(*) OVER () AS total
         FROM stretch
         GROUP BY after, is_poll, day, asked
         ORDER BY newest DESC LIMIT ?2 OFFSET ?3)
  SELECT line.*, number, oldest, first_at, all_sent, all_received, failures, total,
         CASE mechanism WHEN 'secure_sum'
           THEN (SELECT max(charge.epsilon) FROM charge WHERE payload_sha256 = body_sha256) END AS paid
  FROM gathered JOIN line ON line.id = newest ORDER BY newest DESC`;

/** One request that left this device, without the bytes. concerns: whether it told something about the reader. */
export interface TrafficEntry {
  readonly entry_id: number;
  readonly at: Moment;
  readonly words: string;
  readonly method: string;
  readonly url: string;
  readonly sent_bytes: number;
  readonly received_bytes: number;
  readonly status: number | null;
  readonly ms: number;
  readonly epsilon: number;
  readonly concerns: boolean;
}

/** A line of the table: one request, or several polls that ask the same, of which the entry is the newest. */
export interface TrafficLine extends TrafficEntry {
  readonly count: number;
  readonly oldest_id: number;
  readonly first_at: Moment;
  readonly unanswered: number;
  readonly polls: readonly TrafficEntry[];
}

/** A page of the polls behind one line, newest first. */
export interface RequestGroup {
  readonly newest: TrafficEntry;
  readonly oldest_id: number;
  readonly page: number;
  readonly pages: number;
  readonly total: number;
  readonly entries: readonly TrafficEntry[];
}

/** One page of lines, newest first, and how many requests there are: of any kind, and concerning the reader. */
export interface TrafficLog {
  readonly shown: ShownTraffic;
  readonly lines: readonly TrafficLine[];
  readonly page: number;
  readonly pages: number;
  readonly requests: number;
  readonly concerning: number;
}

/** One page of the log; by default what concerned the reader, or all where nothing did. */
export function trafficLog(database: Database, page: number, shown: ShownTraffic | null): TrafficLog {
  const requests = database.number("SELECT count(*) FROM traffic");
  const concerning = database.number(`SELECT coalesce(sum(concerns), 0) FROM (${LINES})`);
  const kind = shown ?? (concerning ? "concerning" : "all");
  const rows = database.rows(GATHERED, [kind, PAGE_SIZE, offset(page)]);
  const total = Number(rows[0]?.["total"] ?? 0);
  const pages = rows.length ? Math.max(1, Math.ceil(total / PAGE_SIZE)) : page;
  return { shown: kind, lines: rows.map((row) => lineOf(database, row)), page, pages, requests, concerning };
}

function lineOf(database: Database, row: Row): TrafficLine {
  const newest = entryOf(row);
  const count = Number(row["number"]);
  return {
    ...newest,
    sent_bytes: Number(row["all_sent"]),
    received_bytes: Number(row["all_received"]),
    epsilon: newest.epsilon || Number(row["paid"] ?? 0),
    count,
    oldest_id: Number(row["oldest"]),
    first_at: momentOf(fromUs(Number(row["first_at"]))),
    unanswered: Number(row["failures"]),
    polls: count > 1 ? pollsOf(database, String(row["asked"]), Number(row["oldest"]), newest.entry_id, POLLS_LISTED, 0) : [],
  };
}

/** The polls of one line; null if its newest is not in the log. */
export function requestGroup(database: Database, oldest: number, newest: number, page: number): RequestGroup | null {
  const row = database.rows(`SELECT * FROM (${LINES}) WHERE id = ?`, [newest])[0];
  if (!row) return null;
  const asked = String(row["asked"]);
  const entries = pollsOf(database, asked, oldest, newest, PAGE_SIZE, offset(page));
  const counted = `SELECT count(*) FROM (${LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll`;
  const total = database.number(counted, [oldest, newest, asked]);
  const { pages } = pageOf(entries, page, total);
  return { newest: entryOf(row), oldest_id: oldest, page, pages, total, entries };
}

function pollsOf(database: Database, asked: string, oldest: number, newest: number, limit: number, skipped: number): TrafficEntry[] {
  const sql = `SELECT * FROM (${LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll ORDER BY id DESC LIMIT ? OFFSET ?`;
  return database.rows(sql, [oldest, newest, asked, limit, skipped]).map(entryOf);
}

function entryOf(row: Row): TrafficEntry {
  return {
    entry_id: Number(row["id"]),
    at: momentOf(fromUs(Number(row["at"]))),
    words: String(row["words"]),
    method: String(row["method"]),
    url: String(row["url"]),
    sent_bytes: Number(row["sent"]),
    received_bytes: Number(row["received"]),
    status: row["status"] === null ? null : Number(row["status"]),
    ms: Number(row["ms"] ?? 0),
    epsilon: Number(row["epsilon"]),
    concerns: Boolean(row["concerns"]),
  };
}
