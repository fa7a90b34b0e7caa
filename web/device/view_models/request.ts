// One kept request with the very bytes that left, and the head of what came back.
import { momentOf } from "../moments";
import { LIST_OF_EVERYBODY } from "../privacy/list_texts";
import type { LoggedRequest } from "../store/byte_log";

/** Most of a request's body shown on the page; the download always has all of it. */
const SHOWN_BYTES = 60_000;
const LINE_BYTES = 16;

export function requestView(kept: LoggedRequest): Record<string, unknown> {
  const head = (bytes: Uint8Array | null) => (bytes ? new TextDecoder("latin1").decode(bytes) : "");
  const told = kept.mechanism !== LIST_OF_EVERYBODY && (kept.mechanism !== "nothing" || kept.method !== "GET");
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
      concerns: kept.epsilon > 0 || told,
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

/** A JSON body indented; null where the body is something else. */
function readable(body: Uint8Array): string | null {
  try {
    return JSON.stringify(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)), null, 2).slice(0, SHOWN_BYTES);
  } catch {
    return null;
  }
}

/** Sixteen bytes a line: offset, hexadecimal, and the printable ones as text. */
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
