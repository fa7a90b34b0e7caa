// Errors on the wire: problem+json (RFC 9457), with whatever else the server says of one.
import { type Form, type ValueOf, WireError, absent, record } from "./forms";
import { integer, text } from "./values";

export const PROBLEM_MEDIA_TYPE = "application/problem+json";

const told = record({
  type: text(),
  title: text(),
  status: integer(),
  detail: text(),
  field: absent(text()),
  limit: absent(text()),
});
const NAMES: ReadonlySet<string> = new Set(Object.keys(told.fields));

/** `type` is a stable name: 'urn:ownfeed:problem:unknown-release'. `more` holds the other members, as they came. */
export type Problem = ValueOf<typeof told> & { readonly more: ReadonlyMap<string, unknown> };

export const problem: Form<Problem> = {
  read(value) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WireError("must be an object");
    const entries = Object.entries(value);
    const known = told.read(Object.fromEntries(entries.filter(([name]) => NAMES.has(name))));
    return { ...known, more: new Map(entries.filter(([name]) => !NAMES.has(name))) };
  },
  write(value) {
    const more = [...value.more].map(([name, each]) => `,${JSON.stringify(name)}:${JSON.stringify(each)}`);
    return `${told.write(value).slice(0, -1)}${more.join("")}}`;
  },
};
