// Single values on the wire: texts, numbers, bytes and moments, read and written as the Python end does.
import { type Form, WireError } from "./forms";

export type Bytes = Uint8Array<ArrayBuffer>;

/** Text; `min` and `max` count characters (code points), as Python does. */
export function text({
  min = 0,
  max = Infinity,
  pattern,
}: { min?: number; max?: number; pattern?: RegExp } = {}): Form<string> {
  return {
    read(value) {
      if (typeof value !== "string") throw new WireError("must be text");
      if (!isWellFormed(value)) throw new WireError("half a character");
      if (value.length > max && characters(value) > max) throw new WireError(`at most ${max} characters`);
      if (min > 0 && characters(value) < min) throw new WireError(`at least ${min} characters`);
      if (pattern && !pattern.test(value)) throw new WireError(`must match ${pattern.source}`);
      return value;
    },
    write: (value) => JSON.stringify(value),
  };
}

/** Browsers have their own since 2023; without one, a surrogate that is half of no pair is looked for. */
function isWellFormed(value: { isWellFormed?(): boolean } & string): boolean {
  return value.isWellFormed?.() ?? !/\p{Cs}/u.test(value);
}

function characters(value: string): number {
  let count = 0;
  for (const _ of value) count += 1;
  return count;
}

/** One of these texts, or of these numbers. */
export function literal<const T extends readonly (string | number)[]>(...values: T): Form<T[number]> {
  return {
    read(value) {
      if (!values.includes(value as T[number])) throw new WireError(`must be one of ${values.join(", ")}`);
      return value as T[number];
    },
    write: (value) => JSON.stringify(value),
  };
}

/** A whole number. Beyond 2^53 JavaScript has no exact ones: such a number is refused. */
export function integer({ min = -Infinity, max = Infinity } = {}): Form<number> {
  return {
    read(value) {
      if (!Number.isSafeInteger(value)) throw new WireError("must be a whole number");
      const number = value as number;
      if (number < min) throw new WireError(`at least ${min}, got ${number}`);
      if (number > max) throw new WireError(`at most ${max}, got ${number}`);
      return number === 0 ? 0 : number; // -0 is no whole number in Python
    },
    write: (value) => String(value),
  };
}

/** A finite number: from `min` to `max`, above `above`, below `below`. */
export function real({ min = -Infinity, max = Infinity, above = -Infinity, below = Infinity } = {}): Form<number> {
  return {
    read(value) {
      if (typeof value !== "number" || !Number.isFinite(value)) throw new WireError("must be a finite number");
      if (value < min || value <= above)
        throw new WireError(`${value < min ? `at least ${min}` : `above ${above}`}, got ${value}`);
      if (value > max || value >= below)
        throw new WireError(`${value > max ? `at most ${max}` : `below ${below}`}, got ${value}`);
      return value;
    },
    write: realText,
  };
}

/**
 * A double as the Python end writes it: the shortest digits, plain from 1e-5 up to below 1e16, with an exponent
 * elsewhere.
 */
export function realText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const scientific = value.toExponential();
  const exponent = Number(scientific.slice(scientific.indexOf("e") + 1));
  if (exponent < -5 || exponent >= 16) return scientific;
  const plain = String(value); // which has an exponent below 1e-6 and from 1e21 on only
  return plain.includes(".") ? plain : `${plain}.0`;
}

export const truth: Form<boolean> = {
  read(value) {
    if (typeof value !== "boolean") throw new WireError("must be true or false");
    return value;
  },
  write: (value) => String(value),
};

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const URL_SAFE = decoderOf(`${ALPHABET}-_`);
const STANDARD = decoderOf(`${ALPHABET}+/`);

function decoderOf(alphabet: string): Int8Array {
  const table = new Int8Array(128).fill(-1);
  for (let place = 0; place < 64; place++) table[alphabet.charCodeAt(place)] = place;
  return table;
}

/** Bytes as base64: written with the URL-safe alphabet, read with either; `min` and `max` count bytes. */
export function bytes({ min = 0, max = Infinity } = {}): Form<Bytes> {
  return {
    read(value) {
      if (typeof value !== "string") throw new WireError("must be text");
      const found = fromBase64(value);
      if (found.length < min) throw new WireError(`at least ${min} bytes, got ${found.length}`);
      if (found.length > max) throw new WireError(`at most ${max} bytes, got ${found.length}`);
      return found;
    },
    write: (value) => `"${toBase64(value)}"`,
  };
}

/** What engines of 2025 and later decode themselves; it passes over white space, which is no base64 of ours. */
const OWN = Uint8Array as unknown as { fromBase64?(text: string, how: { alphabet: string; lastChunkHandling: string }): Bytes };

/** Bytes of base64 in either alphabet, with its padding or without any. Throws WireError. */
export function fromBase64(encoded: string): Bytes {
  return (OWN.fromBase64 && whole(encoded)) ?? digitByDigit(encoded);
}

/** By the engine itself, many times as fast; null where it finds a fault, which is then looked for digit by digit. */
function whole(encoded: string): Bytes | null {
  if (encoded.length % 4 !== 0) return null;
  const padding = encoded.endsWith("==") ? 2 : encoded.endsWith("=") ? 1 : 0;
  const alphabet = /[+/]/.test(encoded) ? "base64" : "base64url";
  try {
    const found = OWN.fromBase64?.(encoded, { alphabet, lastChunkHandling: "strict" }) ?? null;
    return found?.length === (encoded.length / 4) * 3 - padding ? found : null;
  } catch {
    return null;
  }
}

function digitByDigit(encoded: string): Bytes {
  const digits = encoded.replace(/={1,2}$/, "");
  const padding = encoded.length - digits.length;
  const rest = digits.length % 4;
  if (rest === 1 || (padding > 0 && (digits.length + padding) % 4 !== 0)) throw new WireError("not base64: its length");
  const table = /[+/]/.test(digits) ? STANDARD : URL_SAFE;
  const found = new Uint8Array((digits.length * 3) >> 2);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let place = 0; place < digits.length; place++) {
    const digit = table[digits.charCodeAt(place)] ?? -1;
    if (digit < 0) throw new WireError(`not base64: the symbol at ${place}`);
    bits = ((bits << 6) | digit) & 0xffff;
    held += 6;
    if (held >= 8) {
      held -= 8;
      found[at++] = (bits >> held) & 0xff;
    }
  }
  if (bits & ((1 << held) - 1)) throw new WireError("not base64: bits beyond the last byte");
  return found;
}

/** Base64 with the URL-safe alphabet and padding. */
export function toBase64(value: Uint8Array): string {
  let encoded = "";
  const digit = (at: number): string => `${ALPHABET}-_`.charAt(at & 63);
  for (let place = 0; place < value.length; place += 3) {
    const left = value.length - place;
    const word = ((value[place] ?? 0) << 16) | ((value[place + 1] ?? 0) << 8) | (value[place + 2] ?? 0);
    encoded +=
      digit(word >> 18) + digit(word >> 12) + (left > 1 ? digit(word >> 6) : "=") + (left > 2 ? digit(word) : "=");
  }
  return encoded;
}

/** A moment with its offset, as ISO 8601 in the one way that both ends write it. */
export type Moment = string & { readonly __brand: "Moment" };

const MOMENT =
  /^(\d{4})-(\d\d)-(\d\d)[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:([Zz])|([-+\u2212])(\d\d):?(\d\d))?$/;

/** A moment with an offset from UTC, to the microsecond (digits beyond are cut, as Python's are). */
export const moment: Form<Moment> = {
  read(value) {
    if (typeof value !== "string") throw new WireError("must be a moment as text");
    const found = MOMENT.exec(value);
    if (!found) throw new WireError("must be a moment such as 2026-11-20T08:30:00Z");
    const [
      ,
      year = "",
      month = "",
      day = "",
      hour = "",
      minute = "",
      second = "00",
      fraction = "",
      utc,
      sign,
      hours = "",
      minutes = "",
    ] = found;
    if (utc === undefined && sign === undefined) throw new WireError("a moment must have its offset from UTC");
    const days = new Date(Date.UTC(2000, 0, 1));
    days.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
    const exists = days.getUTCMonth() === Number(month) - 1 && days.getUTCDate() === Number(day) && Number(year) >= 1;
    if (!exists || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59)
      throw new WireError("no such moment");
    if (Number(hours) > 23 || Number(minutes) > 59) throw new WireError("no such offset");
    const micros = fraction.slice(0, 6).padEnd(6, "0");
    const offset = Number(hours) || Number(minutes) ? `${sign === "+" ? "+" : "-"}${hours}:${minutes}` : "Z";
    return `${year}-${month}-${day}T${hour}:${minute}:${second}${Number(micros) ? `.${micros}` : ""}${offset}` as Moment;
  },
  write: (value) => `"${value}"`,
};

/** Milliseconds since 1970, for comparing moments. */
export function milliseconds(value: Moment): number {
  return Date.parse(value);
}
