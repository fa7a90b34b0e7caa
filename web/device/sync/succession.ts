// Whether an offered release follows from the one in use (number, date, chain), and its key from the trusted one.
import { AnswerMalformed, BackendRefused, ReleaseForked, ReleaseRefused } from "../errors";
import { DAY_MS, momentOf, msOf } from "../moments";
import { digest } from "../privacy/sealed";
import type { ChainLink, InstalledReleases, KeptRelease, TrustedKey } from "../store/releases";
import { parsed } from "../uplink/answers";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import { LENGTHS, type ChainedRelease, headAfter, nextHead, releaseChain } from "../wire/chain";
import { releaseNumber } from "../wire/ids";
import type { Primitives } from "../wire/primitives";
import { type ReleaseManifest, type SignedManifest, sameBytes } from "../wire/releases";
import { KEYS_LIMIT_BYTES, RotationRefused, fingerprint, follow, keyHistory } from "../wire/rotations";
import type { Bytes } from "../wire/values";

const ANOTHER = "it is signed by another key than the pinned one";
/** A release may be dated so far ahead of this device's clock; one dated years ahead would forbid every later one. */
const AHEAD_AT_MOST_MS = 2 * DAY_MS;
const CHAIN_LIMIT_BYTES = 16 * 1024 * 1024;

/**
 * `offered` as the key to trust, if rotations lead to it from the trusted one. What is asked is the same whatever key is
 * trusted. Throws ReleaseRefused if no chain of rotations leads there, or if one of them is forged.
 */
export async function successor(
  client: HttpClient,
  trusted: TrustedKey,
  offered: Bytes,
  primitives: Primitives,
): Promise<TrustedKey> {
  let found: readonly [Bytes, number] = [trusted.publicKey, trusted.rotation];
  try {
    const look = { words: REQUESTS.say("keys"), purpose: "sync", limitBytes: KEYS_LIMIT_BYTES };
    const history = parsed(keyHistory, (await client.get("/v1/keys", look)).body, "keys");
    found = await follow(history, trusted.publicKey, trusted.rotation, primitives);
  } catch (broken) {
    if (broken instanceof RotationRefused || broken instanceof AnswerMalformed)
      throw new ReleaseRefused("offered now", `${ANOTHER}, and ${broken.message}`);
    if (!(broken instanceof BackendRefused)) throw broken; // else a server without rotations
  }
  const [key, rotation] = found;
  if (sameBytes(key, offered)) return { publicKey: key, first: trusted.first, rotation };
  const [mine, theirs] = [await fingerprint(trusted.publicKey, primitives), await fingerprint(offered, primitives)];
  const readerMay =
    `trusted is ${mine}, offered ${theirs}. If the operator told you of a new key by a way that you trust, set ` +
    "backend_key to it";
  throw new ReleaseRefused("offered now", `${ANOTHER}, which no rotation leads to (${readerMay})`);
}

/** The release as the end of its chain. */
export async function linkOf(
  signed: SignedManifest,
  manifest: ReleaseManifest,
  primitives: Primitives,
): Promise<ChainLink> {
  const manifestSha256 = digest(new TextEncoder().encode(signed.manifest));
  const head = await nextHead(manifest.chain, manifest.release, manifestSha256, primitives);
  return { number: releaseNumber(manifest.release), manifestSha256, head };
}

/**
 * Whether an earlier release that this device has used is offered once more, as by one of several workers that is behind
 * the others: it isn't used again, and no cause for alarm.
 */
export function isOldNews(signed: SignedManifest, manifest: ReleaseManifest, store: InstalledReleases): boolean {
  const current = store.current();
  if (!current || releaseNumber(manifest.release) >= releaseNumber(current.manifest.release)) return false;
  return store.history().some((kept) => kept.signed.manifest === signed.manifest);
}

/**
 * Throws ReleaseRefused unless the offered release comes after the one in use, by number, date and chain. Of a chain that
 * this device has a part of, the releases in between are asked for (the same for everybody).
 */
export async function requireSuccessor(
  manifest: ReleaseManifest,
  current: KeptRelease,
  store: InstalledReleases,
  client: HttpClient,
  now: number,
  primitives: Primitives,
): Promise<void> {
  const [name, number] = [manifest.release, releaseNumber(manifest.release)];
  const inUse = releaseNumber(current.manifest.release);
  if (number === inUse) throw new ReleaseForked(name, "other content than before under the same number");
  if (number < inUse)
    throw new ReleaseRefused(name, `its number is not above that of ${current.manifest.release}, which is in use`);
  if (msOf(manifest.created_at) < Math.min(msOf(current.manifest.created_at), now))
    throw new ReleaseRefused(name, `its date is before that of ${current.manifest.release}`);
  const kept = store.chained();
  if (!kept) return;
  let head: string | null = kept.head;
  if (number > kept.number + 1) {
    const between = (await chainSince(client, kept, number)).filter((each) => {
      const at = releaseNumber(each.release);
      return kept.number < at && at < number;
    });
    head = await headAfter(head, between, primitives);
  }
  if (manifest.chain === head) return;
  const why = `the releases before it are others than those that this device was shown up to r${kept.number}`;
  throw new ReleaseForked(name, why);
}

/** Throws ReleaseRefused for a release dated more than two days ahead of this device's clock. */
export function requireSaneDate(manifest: ReleaseManifest, now: number): void {
  if (msOf(manifest.created_at) <= now + AHEAD_AT_MOST_MS) return;
  const [dated, today] = [manifest.created_at.slice(0, 10), momentOf(now).slice(0, 10)];
  const why =
    `its date, ${dated}, is more than two days ahead of this device's clock, ${today}; if that clock is wrong, set it`;
  throw new ReleaseRefused(manifest.release, why);
}

/** Throws ReleaseForked unless the release in use is in the chain that the server shows everybody. */
export async function requireInChain(client: HttpClient, store: InstalledReleases): Promise<void> {
  const kept = store.chained();
  if (kept) await chainSince(client, kept, kept.number + 1);
}

/**
 * The server's chain from the kept release to the one before `number` at least. Throws ReleaseForked if it doesn't hold
 * the kept one as it was, and as HttpClient.
 */
async function chainSince(client: HttpClient, kept: ChainLink, number: number): Promise<readonly ChainedRelease[]> {
  let releases: readonly ChainedRelease[] = [];
  for (const length of LENGTHS) {
    const look = { words: REQUESTS.say("chain"), purpose: "sync", limitBytes: CHAIN_LIMIT_BYTES };
    const answer = await client.get(`/v1/releases/chain?last=${length}`, look);
    ({ releases } = parsed(releaseChain, answer.body, "chain of releases"));
    const [oldest] = releases;
    if (oldest && releaseNumber(oldest.release) <= kept.number) break;
  }
  const mine = releases.find((each) => releaseNumber(each.release) === kept.number);
  const shown = "the list of releases that the server shows everybody";
  if (mine?.manifest_sha256 !== kept.manifestSha256) throw new ReleaseForked(`r${kept.number}`, `${shown} doesn't have it`);
  const newest = Math.max(0, ...releases.slice(-1).map((each) => releaseNumber(each.release)));
  if (newest < number - 1) throw new ReleaseForked(`r${number}`, `${shown} ends with r${newest}`);
  return releases;
}
