// What a message is made of: a form reads a value from parsed JSON, refusing what the Python wire refuses and naming
// the field, and writes it back as the same bytes as the Python end (pydantic's `model_dump_json`).
//
// Two things that pydantic's lax mode takes are refused here, since no end of ours sends them: numbers and truths
// written as text or as each other, and moments written as numbers.

/** A step on the way to a field: its name, or a place in a list. */
export type Step = string | number;

/**
 * A message that an end of ours would not have sent. `path` names the field; empty where the message as a whole is
 * meant.
 */
export class WireError extends Error {
  readonly path: Step[] = [];
  constructor(readonly reason: string) {
    super(reason);
    this.name = "WireError";
  }

  /** The same, one step further out. */
  within(step: Step): this {
    this.path.unshift(step);
    this.message = `${this.path.join(".")}: ${this.reason}`;
    return this;
  }
}

export interface Form<T> {
  /** The value, checked. Throws WireError. */
  read(value: unknown): T;
  /** JSON text. */
  write(value: T): string;
}

/** A field that may be absent: what it is then, and whether it is left out when it is written. */
export interface Field<T> extends Form<T> {
  readonly fallback: T;
  readonly omitted?: (value: T) => boolean;
  /** The name on the wire, where it is another than in the message. */
  readonly alias?: string;
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
  /** A message of our own, checked as one that is read; what is not given is as it is by default. */
  make(given: Given<F>): Message<F>;
}

/** `form` read at `step`; what is wrong with it is said with the way there. */
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

/** A form that is read alike and may be absent. */
export function optional<T, D extends T>(
  form: Form<T>,
  fallback: D,
  { omitted, alias }: { omitted?: (value: T) => boolean; alias?: string } = {},
): Field<T> {
  return {
    read: (value) => form.read(value),
    write: (value) => form.write(value),
    fallback,
    ...(omitted && { omitted }),
    ...(alias !== undefined && { alias }),
  };
}

/**
 * A message: exactly these fields, written in this order. `check` throws WireError where fields don't go together.
 */
export function record<F extends Fields>(fields: F, check: (message: Message<F>) => void = () => {}): RecordForm<F> {
  const entries = Object.entries(fields);
  const names = new Map<string, string>();
  for (const [name, form] of entries) {
    names.set(name, name);
    if (isField(form) && form.alias !== undefined) names.set(form.alias, name);
  }

  function read(value: unknown): Message<F> {
    if (!isObject(value)) throw new WireError("must be an object");
    const message: Record<string, unknown> = {};
    for (const [name, form] of entries) {
      const alias = isField(form) ? form.alias : undefined;
      if (alias !== undefined && Object.hasOwn(value, alias)) message[name] = at(alias, form, value[alias]);
      else if (Object.hasOwn(value, name)) message[name] = at(name, form, value[name]);
      else if (isField(form)) message[name] = form.fallback;
      else throw new WireError("missing").within(name);
    }
    for (const name of Object.keys(value)) if (!names.has(name)) throw new WireError("not expected here").within(name);
    check(message as Message<F>);
    return message as Message<F>;
  }

  function write(message: Message<F>): string {
    const parts: string[] = [];
    for (const [name, form] of entries) {
      const value = message[name];
      if (isField(form) && form.omitted?.(value)) continue;
      parts.push(`${JSON.stringify((isField(form) && form.alias) || name)}:${form.write(value)}`);
    }
    return `{${parts.join(",")}}`;
  }

  function make(given: Given<F>): Message<F> {
    const whole: Record<string, unknown> = { ...given };
    for (const [name, form] of entries) if (!(name in whole) && isField(form)) whole[name] = form.fallback;
    return read(JSON.parse(write(whole as Message<F>)));
  }

  return { fields, read, write, make };
}

/** A list; its length is between the limits. */
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

/** Values by name. JavaScript puts names that are whole numbers first, which no name of ours is. */
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

/** null where it is absent. */
export function absent<T>(
  form: Form<T>,
  { omitted = false, alias }: { omitted?: boolean; alias?: string } = {},
): Field<T | null> {
  return optional(nullable(form), null, {
    ...(omitted && { omitted: (value: T | null) => value === null }),
    ...(alias !== undefined && { alias }),
  });
}

/** One of several messages, told apart by their field `kind`. */
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

/** The value that JSON text stands for. Throws WireError. */
export function parsed(text: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof text === "string" ? text : STRICT_UTF8.decode(text));
  } catch (broken) {
    throw new WireError(`not JSON: ${broken instanceof Error ? broken.message : String(broken)}`);
  }
}

/** A message from its bytes, or from its text. Throws WireError. */
export function readMessage<T>(form: Form<T>, text: Uint8Array | string): T {
  return form.read(parsed(text));
}

/** A message's bytes as they go over the wire. */
export function messageBytes<T>(form: Form<T>, message: T): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(form.write(message));
}
