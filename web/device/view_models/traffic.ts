// What left this device: the log of requests, with equal polls grouped in one line; single requests, with the exact
// bytes sent; and what was shared today. The SQL is that of device_app/view_models/traffic.py, which explains it.
import type { DeviceStores } from "../parts";
import type { Ledger } from "../privacy/accounting/ledger";
import { CHANNELS } from "../privacy/accounting/limits";
import { UP_TO_LIMITS } from "../privacy/accounting/moved_charges";
import { DAY_MS, momentOf, msOf } from "../protocol/moments";
import type { ReportPolicy } from "../reports/policy";
import { LIST_OF_EVERYBODY } from "../privacy/requests";
import type { Moment } from "../protocol/forms";
import type { LoggedRequest } from "../store/byte_log";
import { PAGE_SIZE, fromUs, offset, pageOf, type Database, type Row } from "../store/database";
import { TAKEN_OVER } from "../store/preferences";

/** Most of a request's body shown on the page; the download has all of it. */
const SHOWN_BYTES = 60_000;
const LINE_BYTES = 16;

export function requestView(kept: LoggedRequest): Record<string, unknown> {
  const head = (bytes: Uint8Array | null) => (bytes ? new TextDecoder("latin1").decode(bytes) : "");
  const reported = kept.mechanism !== LIST_OF_EVERYBODY && (kept.mechanism !== "nothing" || kept.method !== "GET");
  const traffic = {
    entry: {
      entry_id: kept.id,
      at: momentOf(kept.at),
      words: kept.words,
      method: kept.method,
      url: kept.url,
      sent_bytes: kept.head.length + kept.body_bytes,
      received_bytes: (kept.response_head?.length ?? 0) + (kept.response_bytes ?? 0),
      status: kept.status,
      ms: kept.ms ?? 0,
      epsilon: kept.epsilon,
      concerns: kept.epsilon > 0 || reported,
    },
    request_head: head(kept.head),
    request_body: Array.from(kept.body.subarray(0, SHOWN_BYTES)),
    body_is_whole: kept.body.length === kept.body_bytes,
    body_bytes: kept.body_bytes,
    response_head: head(kept.response_head),
    trouble: kept.trouble,
  };
  return { traffic, readable: readable(kept.body), hexdump: hexdump(kept.body.subarray(0, SHOWN_BYTES)), cut: kept.body.length > SHOWN_BYTES };
}

/** A JSON body, indented; null if the body is something else. */
function readable(body: Uint8Array): string | null {
  try {
    return JSON.stringify(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)), null, 2).slice(0, SHOWN_BYTES);
  } catch {
    return null;
  }
}

/** Sixteen bytes per line: offset, hexadecimal, and printable bytes as text. */
function hexdump(body: Uint8Array): string {
  const lines: string[] = [];
  for (let start = 0; start < body.length; start += LINE_BYTES) {
    const row = Array.from(body.subarray(start, start + LINE_BYTES));
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    lines.push(`${start.toString(16).padStart(6, "0")}  ${hex.padEnd(3 * LINE_BYTES - 1)}  ${text}`);
  }
  return lines.join("\n");
}

/** Number of polls listed with a collapsed line. */
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

/**
 * One page of the log, newest first; by default what concerned the reader, or everything if nothing did. Also counts the
 * requests: in total, and concerning the reader.
 */
export function trafficLog(database: Database, page: number, shown: ShownTraffic | null) {
  const requests = database.number("SELECT count(*) FROM traffic");
  const concerning = database.number(`SELECT coalesce(sum(concerns), 0) FROM (${LINES})`);
  const kind = shown ?? (concerning ? "concerning" : "all");
  const rows = database.rows(GATHERED, [kind, PAGE_SIZE, offset(page)]);
  const total = Number(rows[0]?.["total"] ?? 0);
  const pages = rows.length ? Math.max(1, Math.ceil(total / PAGE_SIZE)) : page;
  return { shown: kind, lines: rows.map((row) => lineOf(database, row)), page, pages, requests, concerning };
}

/** Returns a line of one request, or of several equal polls represented by the newest. */
function lineOf(database: Database, row: Row) {
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

/** A page of the polls of one line, newest first; null if its newest isn't in the log. */
export function requestGroup(database: Database, oldest: number, newest: number, page: number) {
  const row = database.rows(`SELECT * FROM (${LINES}) WHERE id = ?`, [newest])[0];
  if (!row) return null;
  const request = String(row["asked"]);
  const entries = pollsOf(database, request, oldest, newest, PAGE_SIZE, offset(page));
  const counted = `SELECT count(*) FROM (${LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll`;
  const total = database.number(counted, [oldest, newest, request]);
  const { pages } = pageOf(entries, page, total);
  return { newest: entryOf(row), oldest_id: oldest, page, pages, total, entries };
}

function pollsOf(database: Database, request: string, oldest: number, newest: number, limit: number, skipped: number) {
  const sql = `SELECT * FROM (${LINES}) WHERE id BETWEEN ? AND ? AND asked = ? AND is_poll ORDER BY id DESC LIMIT ? OFFSET ?`;
  return database.rows(sql, [oldest, newest, request, limit, skipped]).map(entryOf);
}

/** One sent request, without the bytes. concerns: whether it contained something about the reader. */
function entryOf(row: Row) {
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

/** Preference kept by an erase: its time, and what had been sent that day without a charge. */
export const LEFT_BEFORE_ERASE = "left_before_erase";
/** States of a part in a round for which something was sent. */
const SENT: readonly string[] = ["summing", "uploaded", "applied"];

/** What was shared on the current UTC day, over all channels. */
export function todayView(stores: DeviceStores, policy: ReportPolicy, ledger: Ledger) {
  const now = ledger.now();
  const day = new Date(now).toISOString().slice(0, 10);
  const today = stores.ledgerEntries.days().filter((one) => one.day === day);
  const charges = (channel: string) => today.find((one) => one.channel === channel)?.charges ?? 0;
  const left = leftSoFar(stores, ledger);
  const erased = stores.preferences.get(LEFT_BEFORE_ERASE) as { at: Moment } | null;
  const movedAt = stores.preferences.get(TAKEN_OVER) as Moment | null;
  return {
    reports: charges("reports"),
    again: left.again,
    counts: charges("counts") + left.counts,
    rounds: charges("training") + left.rounds,
    one_number: policy.mode.label.inASentence,
    spent_before: CHANNELS.some((channel) => ledger.total(channel) > 0),
    erased_at: erased?.at ?? null,
    moved: movedAt !== null && new Date(msOf(movedAt)).toISOString().slice(0, 10) === day,
    up_to_limits: stores.ledgerEntries.chargedBy(UP_TO_LIMITS, Math.floor(now / DAY_MS) * DAY_MS),
  };
}

/** How many messages were sent today without a charge, up to `at` (milliseconds since 1970). */
export function leftSoFar(stores: DeviceStores, ledger: Ledger) {
  const now = ledger.now();
  const midnight = Math.floor(now / DAY_MS) * DAY_MS;
  const kept = stores.preferences.get(LEFT_BEFORE_ERASE) as { at: Moment; again: number; counts: number; rounds: number } | null;
  const before = kept && msOf(kept.at) >= midnight ? kept : null;
  const since = before ? msOf(before.at) : midnight;
  const charged = stores.ledgerEntries.ofSums();
  const reports = stores.byteLog.sentSince("recall", since) - stores.ledgerEntries.chargesSince("reports", since);
  const uncharged = stores.counted.list().filter((one) => one.until >= midnight && !charged.has(one.round)).length;
  const exact = stores.participations
    .list()
    .filter((one) => SENT.includes(one.state) && one.sentBytes > 0 && one.epsilon === 0 && one.task !== "count")
    .filter((one) => one.changedAt >= midnight).length;
  return {
    at: now,
    again: (before?.again ?? 0) + Math.max(0, reports),
    counts: (before?.counts ?? 0) + uncharged,
    rounds: (before?.rounds ?? 0) + exact,
  };
}
