// Names that both ends use, with the alphabet and length each may have.
import { integer, text } from "./values";

/** An end that names another version is refused. */
export const PROTOCOL_VERSION = 3;
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

/** round-12 -> 12. */
export function roundNumber(round: string): number {
  return Number(round.slice("round-".length));
}

/** r18 -> 2: the number modulo 16, as a device names a release to a server. */
export function shortened(release: string): number {
  return releaseNumber(release) % SHORT_RELEASES;
}

/** Whether each stands there once. */
export function distinct(values: readonly unknown[]): boolean {
  return new Set(values).size === values.length;
}
