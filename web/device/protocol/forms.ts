// Forms for values and messages on the wire.
//
// A form reads a value from parsed JSON, rejecting what the Python wire rejects and naming the field, and writes it as
// the same bytes as the Python side (pydantic's `model_dump_json`).
//
// Two things that pydantic's lax mode accepts are rejected here, since neither of our sides sends them: numbers and
// booleans written as text or as each other, and moments written as numbers.

export type Bytes = Uint8Array<ArrayBuffer>;

/** Text; `min` and `max` count code points, as in Python. */
export function text({
  min = 0,
  max = Infinity,
  pattern,
}: { min?: number; max?: number; pattern?: RegExp } = {}): Form<string> {
  return {
    read(value) {
      if (typeof value !== "string") throw new WireError("must be text");
      if (!isWellFormed(value)) throw new WireError("contains an incomplete character");
      if (value.length > max && characters(value) > max) throw new WireError(`at most ${max} characters`);
      if (min > 0 && characters(value) < min) throw new WireError(`at least ${min} characters`);
      if (pattern && !pattern.test(value)) throw new WireError(`must match ${pattern.source}`);
      return value;
    },
    write: (value) => JSON.stringify(value),
  };
}

/** Uses the browser's own method (since 2023), otherwise looks for an unpaired surrogate. */
function isWellFormed(value: { isWellFormed?(): boolean } & string): boolean {
  return value.isWellFormed?.() ?? !/\p{Cs}/u.test(value);
}

function characters(value: string): number {
  let count = 0;
  for (const _ of value) count += 1;
  return count;
}

/** One of these texts or numbers. */
export function literal<const T extends readonly (string | number)[]>(...values: T): Form<T[number]> {
  return {
    read(value) {
      if (!values.includes(value as T[number])) throw new WireError(`must be one of ${values.join(", ")}`);
      return value as T[number];
    },
    write: (value) => JSON.stringify(value),
  };
}

/** Reads an integer. JavaScript has no exact integers beyond 2^53, so such a number is rejected. */
export function integer({ min = -Infinity, max = Infinity } = {}): Form<number> {
  return {
    read(value) {
      if (!Number.isSafeInteger(value)) throw new WireError("must be a whole number");
      const number = value as number;
      if (number < min) throw new WireError(`at least ${min}, got ${number}`);
      if (number > max) throw new WireError(`at most ${max}, got ${number}`);
      return number === 0 ? 0 : number; // Python integers have no -0
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
 * A double as the Python side writes it: the shortest digits, plain from 1e-5 to below 1e16, otherwise with an
 * exponent.
 */
export function realText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const scientific = value.toExponential();
  const exponent = Number(scientific.slice(scientific.indexOf("e") + 1));
  if (exponent < -5 || exponent >= 16) return scientific;
  const plain = String(value); // which uses an exponent only below 1e-6 and from 1e21
  return plain.includes(".") ? plain : `${plain}.0`;
}

export const truth: Form<boolean> = {
  read(value) {
    if (typeof value !== "boolean") throw new WireError("must be true or false");
    return value;
  },
  write: (value) => String(value),
};

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

/** Decodes base64 in either alphabet, with or without padding. Throws WireError. */
export function fromBase64(encoded: string): Bytes {
  if (!/^(?:[\w-]*|[A-Za-z0-9+/]*)={0,2}$/.test(encoded)) throw new WireError("not base64: its symbols");
  const standard = encoded.replaceAll("-", "+").replaceAll("_", "/");
  let binary: string;
  try {
    binary = atob(standard);
  } catch {
    throw new WireError("not base64: its length");
  }
  const last = btoa(binary.slice(binary.length - (binary.length % 3))).replace(/=+$/, "");
  if (!standard.replace(/=+$/, "").endsWith(last)) throw new WireError("not base64: bits beyond the last byte");
  const found = new Uint8Array(binary.length);
  for (let place = 0; place < found.length; place++) found[place] = binary.charCodeAt(place);
  return found;
}

/** Base64 with the URL-safe alphabet and padding. */
export function toBase64(value: Uint8Array): string {
  let binary = "";
  for (const byte of value) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_");
}

/** A moment with its offset, as ISO 8601 in the single format that both sides write. */
export type Moment = string & { readonly __brand: "Moment" };

const MOMENT =
  /^(\d{4})-(\d\d)-(\d\d)[Tt _](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:([Zz])|([-+\u2212])(\d\d):?(\d\d))?$/;

/** A moment with an offset from UTC, to the microsecond (further digits are cut off, as in Python). */
export const moment: Form<Moment> = {
  read(value) {
    if (typeof value !== "string") throw new WireError("must be a time as text");
    const found = MOMENT.exec(value);
    if (!found) throw new WireError("must be a time such as 2026-11-20T08:30:00Z");
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
    if (utc === undefined && sign === undefined) throw new WireError("a time must state its offset from UTC");
    const days = new Date(Date.UTC(2000, 0, 1));
    days.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
    const exists = days.getUTCMonth() === Number(month) - 1 && days.getUTCDate() === Number(day) && Number(year) >= 1;
    if (!exists || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59)
      throw new WireError("this time does not exist");
    if (Number(hours) > 23 || Number(minutes) > 59) throw new WireError("this offset does not exist");
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

/** A step of a field's path: a name, or an index in a list. */
export type Step = string | number;

/** A message that neither of our sides would have sent. `path` names the field; empty for the whole message. */
export class WireError extends Error {
  readonly path: Step[] = [];
  constructor(readonly reason: string) {
    super(reason);
    this.name = "WireError";
  }

  /** Prepends one step to the path. */
  within(step: Step): this {
    this.path.unshift(step);
    this.message = `${this.path.join(".")}: ${this.reason}`;
    return this;
  }
}

export interface Form<T> {
  /** Checks and returns the value. Throws WireError. */
  read(value: unknown): T;
  /** JSON text. */
  write(value: T): string;
}

/** A field that may be absent, and its default. */
export interface Field<T> extends Form<T> {
  readonly fallback: T;
}

export type ValueOf<F> = F extends Form<infer T> ? T : never;
type Fields = Readonly<Record<string, Form<unknown>>>;
type Message<F extends Fields> = { readonly [K in keyof F]: ValueOf<F[K]> };
type Given<F extends Fields> = {
  readonly [K in keyof F as F[K] extends { readonly fallback: unknown } ? never : K]: ValueOf<F[K]>;
} & { readonly [K in keyof F as F[K] extends { readonly fallback: unknown } ? K : never]?: ValueOf<F[K]> };

/** The form of a message with fields. */
export interface RecordForm<F extends Fields> extends Form<Message<F>> {
  readonly fields: F;
  /** Makes a message of our own, with the same checks; fields that aren't given get their defaults. */
  make(given: Given<F>): Message<F>;
}

/** Reads `form` at `step`; adds the step to the path of errors. */
function at<T>(step: Step, form: Form<T>, value: unknown): T {
  try {
    return form.read(value);
  } catch (wrong) {
    throw wrong instanceof WireError ? wrong.within(step) : wrong;
  }
}

function isField(form: Form<unknown>): form is Field<unknown> {
  return "fallback" in form;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A form that may be absent and otherwise reads the same. */
export function optional<T, D extends T>(form: Form<T>, fallback: D): Field<T> {
  return { read: (value) => form.read(value), write: (value) => form.write(value), fallback };
}

/** A message: exactly these fields, written in this order. `check` throws WireError for inconsistent fields. */
export function record<F extends Fields>(fields: F, check: (message: Message<F>) => void = () => {}): RecordForm<F> {
  const entries = Object.entries(fields);

  function read(value: unknown): Message<F> {
    if (!isObject(value)) throw new WireError("must be an object");
    const message: Record<string, unknown> = {};
    for (const [name, form] of entries) {
      if (Object.hasOwn(value, name)) message[name] = at(name, form, value[name]);
      else if (isField(form)) message[name] = form.fallback;
      else throw new WireError("missing").within(name);
    }
    for (const name of Object.keys(value)) if (!Object.hasOwn(fields, name)) throw new WireError("not expected here").within(name);
    check(message as Message<F>);
    return message as Message<F>;
  }

  function write(message: Message<F>): string {
    const parts = entries.map(([name, form]) => `${JSON.stringify(name)}:${form.write(message[name])}`);
    return `{${parts.join(",")}}`;
  }

  function make(given: Given<F>): Message<F> {
    const whole: Record<string, unknown> = { ...given };
    for (const [name, form] of entries) if (!(name in whole) && isField(form)) whole[name] = form.fallback;
    return read(JSON.parse(write(whole as Message<F>)));
  }

  return { fields, read, write, make };
}

/** A list whose length is within the limits. */
export function list<T>(form: Form<T>, { min = 0, max = Infinity } = {}): Form<readonly T[]> {
  return {
    read(value) {
      if (!Array.isArray(value)) throw new WireError("must be a list");
      if (value.length > max) throw new WireError(`at most ${max} entries, got ${value.length}`);
      if (value.length < min) throw new WireError(`at least ${min} entries, got ${value.length}`);
      return value.map((each, place) => at(place, form, each));
    },
    write: (values) => `[${values.map((each) => form.write(each)).join(",")}]`,
  };
}

/** Values by name. JavaScript orders integer names first; none of our names is an integer. */
export function byName<T>(form: Form<T>, { max = Infinity } = {}): Form<ReadonlyMap<string, T>> {
  return {
    read(value) {
      if (!isObject(value)) throw new WireError("must be an object");
      const entries = Object.entries(value);
      if (entries.length > max) throw new WireError(`at most ${max} entries, got ${entries.length}`);
      return new Map(entries.map(([name, each]) => [name, at(name, form, each)]));
    },
    write: (values) =>
      `{${[...values].map(([name, each]) => `${JSON.stringify(name)}:${form.write(each)}`).join(",")}}`,
  };
}

/** null, or a value of the form. */
export function nullable<T>(form: Form<T>): Form<T | null> {
  return {
    read: (value) => (value === null ? null : form.read(value)),
    write: (value) => (value === null ? "null" : form.write(value)),
  };
}

/** null if absent. */
export function absent<T>(form: Form<T>): Field<T | null> {
  return optional(nullable(form), null);
}

/** One of several messages, distinguished by their field `kind`. */
export function oneOf<F extends Readonly<Record<string, Form<{ readonly kind: string }>>>>(
  forms: F,
): Form<ValueOf<F[keyof F]>> {
  type Any = ValueOf<F[keyof F]>;
  const known = new Map(Object.entries(forms));
  return {
    read(value) {
      if (!isObject(value)) throw new WireError("must be an object");
      const form = typeof value["kind"] === "string" ? known.get(value["kind"]) : undefined;
      if (!form) throw new WireError(`kind: expected one of ${[...known.keys()].join(", ")}`);
      return at(String(value["kind"]), form, value) as Any;
    },
    write(value) {
      const form = known.get((value as { readonly kind: string }).kind);
      if (!form) throw new WireError(`kind: expected one of ${[...known.keys()].join(", ")}`);
      return form.write(value as { readonly kind: string });
    },
  };
}

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses JSON text. Throws WireError. */
export function parsed(text: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof text === "string" ? text : STRICT_UTF8.decode(text));
  } catch (broken) {
    throw new WireError(`not JSON: ${broken instanceof Error ? broken.message : String(broken)}`);
  }
}

/** Reads a message from bytes or text. Throws WireError. */
export function readMessage<T>(form: Form<T>, text: Uint8Array | string): T {
  return form.read(parsed(text));
}

/** A message's bytes as sent. */
export function messageBytes<T>(form: Form<T>, message: T): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(form.write(message));
}
