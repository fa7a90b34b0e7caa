// Identifiers that both sides use, with their alphabet and length, and errors on the wire: problem+json (RFC 9457) with
// any further members.
import { WireError, absent, integer, record, text, type Form, type ValueOf } from "./forms";

/** A peer with another version is rejected. */
export const PROTOCOL_VERSION = 4;
export const PROTOCOL_HEADER = "ownfeed-protocol";
export const SHORT_RELEASES = 16;

export const newsId = text({ pattern: /^[A-Za-z0-9][A-Za-z0-9._:~-]{0,79}$/ });
export const releaseId = text({ pattern: /^r[0-9]{1,9}$/ });
export const roundId = text({ pattern: /^round-[1-9][0-9]{0,8}$/ });
export const pseudonym = text({ pattern: /^[A-Za-z0-9_-]{22,64}$/ });
export const shortRelease = integer({ min: 0, max: SHORT_RELEASES - 1 });
export const sha256Hex = text({ pattern: /^[0-9a-f]{64}$/ });
export const shardName = text({ pattern: /^[0-9]{4}-[0-9]{2}-[0-9]{2}\.[0-9]{1,4}$/ });

/** r12 -> 12. */
export function releaseNumber(release: string): number {
  return Number(release.slice("r".length));
}

/** r18 -> 2: the number modulo 16, which is what a device sends to name a release. */
export function shortened(release: string): number {
  return releaseNumber(release) % SHORT_RELEASES;
}

/** Whether all values are different. */
export function distinct(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}

export const PROBLEM_MEDIA_TYPE = "application/problem+json";

const knownProblem = record({
  type: text(),
  title: text(),
  status: integer(),
  detail: text(),
  field: absent(text()),
  limit: absent(text()),
});
const NAMES: ReadonlySet<string> = new Set(Object.keys(knownProblem.fields));

/** `type` is a stable name: 'urn:ownfeed:problem:unknown-release'. `more` holds the other members as received. */
export type Problem = ValueOf<typeof knownProblem> & { readonly more: ReadonlyMap<string, unknown> };

export const problem: Form<Problem> = {
  read(value) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WireError("must be an object");
    const entries = Object.entries(value);
    const known = knownProblem.read(Object.fromEntries(entries.filter(([name]) => NAMES.has(name))));
    return { ...known, more: new Map(entries.filter(([name]) => !NAMES.has(name))) };
  },
  write(value) {
    const more = [...value.more].map(([name, each]) => `,${JSON.stringify(name)}:${JSON.stringify(each)}`);
    return `${knownProblem.write(value).slice(0, -1)}${more.join("")}}`;
  },
};
