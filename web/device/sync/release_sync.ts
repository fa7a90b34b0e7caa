// Pulls releases: checks signature, hashes and a trial run first, then swaps once.
//
// Also checks that an offered release follows from the current one (number, date, chain), and its key from the trusted
// one.
import { AnswerMalformed, BackendRefused, ReleaseForked, ReleaseRefused } from "../errors";
import { DAY_MS, HOUR_MS, momentOf, msOf, type Clock } from "../protocol/moments";
import { digest } from "../privacy/sealed";
import { KEYS_LIMIT_BYTES, LENGTHS, RotationRefused, fingerprint, follow, headAfter, keyHistory, nextHead, releaseChain, type ChainedRelease } from "../protocol/chain";
import { WireError, type Bytes } from "../protocol/forms";
import { releaseNumber, shortened } from "../protocol/ids";
import type { Primitives } from "../protocol/primitives";
import { SignatureRefused, sameBytes, signedManifest, type BlobRef, type ReleaseManifest, type SignedManifest, verifyRelease } from "../protocol/releases";
import type { Graphs } from "../ranking/session";
import { blobRefs, servingRefs, type ChainLink, type InstalledReleases, type StoredRelease, type TrustedKey } from "../store/releases";
import { parsed } from "../uplink/backend_client";
import { REQUESTS, type HttpClient } from "../uplink/http";
import { Release } from "./installed_release";
import { fetchBlobs, groupsOf } from "./release_blobs";

const ANOTHER = "it is not signed by the pinned key";
/**
 * The most by which a release's date may be ahead of this device's clock: one dated years ahead would block every later
 * one.
 */
const AHEAD_AT_MOST_MS = 2 * DAY_MS;
const CHAIN_LIMIT_BYTES = 16 * 1024 * 1024;

/**
 * Returns `offered` as the key to trust, if rotations lead to it from the trusted one. The request doesn't depend on
 * the trusted key. Throws ReleaseRefused if no chain of rotations leads there, or if one of them is forged.
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
    if (!(broken instanceof BackendRefused)) throw broken; // otherwise the server has no rotations
  }
  const [key, rotation] = found;
  if (sameBytes(key, offered)) return { publicKey: key, first: trusted.first, rotation };
  const [mine, theirs] = [await fingerprint(trusted.publicKey, primitives), await fingerprint(offered, primitives)];
  const readerMay =
    `trusted is ${mine}, offered ${theirs}. If the operator told you of a new key by a way that you trust, set ` +
    "backend_key to it";
  throw new ReleaseRefused("offered now", `${ANOTHER}, which no rotation leads to (${readerMay})`);
}

/** Returns the release's link, with which this device's chain now ends. */
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
 * Returns whether an earlier release used by this device is offered again, for example by a server worker that is
 * behind the others. It isn't used again, and this is not an error.
 */
export function isOldNews(signed: SignedManifest, manifest: ReleaseManifest, store: InstalledReleases): boolean {
  const current = store.current();
  if (!current || releaseNumber(manifest.release) >= releaseNumber(current.manifest.release)) return false;
  return store.history().some((kept) => kept.signed.manifest === signed.manifest);
}

/**
 * Throws ReleaseRefused unless the offered release follows the current one by number, date and chain. If this device
 * knows part of the chain, it requests the releases in between (the same for every device).
 */
export async function requireSuccessor(
  manifest: ReleaseManifest,
  current: StoredRelease,
  store: InstalledReleases,
  client: HttpClient,
  now: number,
  primitives: Primitives,
): Promise<void> {
  const [name, number] = [manifest.release, releaseNumber(manifest.release)];
  const inUse = releaseNumber(current.manifest.release);
  if (number === inUse) throw new ReleaseForked(name, "its content differs from an earlier release with the same number");
  if (number < inUse)
    throw new ReleaseRefused(name, `its number is not above that of ${current.manifest.release}, which is in use`);
  if (msOf(manifest.created_at) < Math.min(msOf(current.manifest.created_at), now))
    throw new ReleaseRefused(name, `its date is before that of ${current.manifest.release}`);
  const kept = store.chained();
  if (!kept) throw new Error("a release must be installed together with its place in the chain");
  let head: string | null = kept.head;
  if (number > kept.number + 1) {
    const between = (await chainSince(client, kept, number)).filter((each) => {
      const at = releaseNumber(each.release);
      return kept.number < at && at < number;
    });
    head = await headAfter(head, between, primitives);
  }
  if (manifest.chain === head) return;
  const why = `the releases before it differ from those this device was shown up to r${kept.number}`;
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

/** Throws ReleaseForked unless the current release is in the chain that the server publishes for every device. */
export async function requireInChain(client: HttpClient, store: InstalledReleases): Promise<void> {
  const kept = store.chained();
  if (kept) await chainSince(client, kept, kept.number + 1);
}

/**
 * The server's chain from the kept release at least to the one before `number`. Throws ReleaseForked if it doesn't
 * contain the kept one unchanged, and HttpClient's errors.
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

const ASKED_WHOLE_EVERY_MS = HOUR_MS;
const CHAIN_CHECKED_EVERY_MS = DAY_MS;
const RELEASE_LIMIT_BYTES = 256 * 1024 * 1024;

/**
 * Keeps the current release up to date.
 *
 * The key: `pinnedKey` if given, else the one pinned in the store. On the first sync of a device without either, the
 * backend's own, pinned once the release has passed its checks (trust on first use). A release under another key is
 * accepted if rotations lead to it from the trusted one. A release must follow from the current one. Once a day, and
 * with each new release, the current one is looked up in the list of releases that every device gets.
 *
 * Requests depend only on which release and blobs are here. The ETag sent is the current release's number modulo 16, so
 * that it can't mark the device; once an hour none is sent, because a release 16 ahead has the same ETag.
 */
export class ReleaseSync {
  private askedWholeAt: number | null = null;
  private chainCheckedAt: number | null = null;
  private completing: { readonly of: string; readonly done: Promise<void> } | null = null;
  /** The signed manifest whose round models have passed their checks. */
  private restChecked: string | null = null;

  constructor(
    private readonly client: HttpClient,
    private readonly store: InstalledReleases,
    private readonly graphs: Graphs,
    private readonly primitives: Primitives,
    private readonly clock: Clock,
    private readonly pinnedKey: Bytes | null = null,
  ) {}

  /**
   * Polls for a release; true if another one (or a repaired one) is now current, with everything that feeds and reports
   * need. Throws ReleaseRefused if it fails a check; the current one then stays. HttpClient's network errors.
   */
  async refresh(): Promise<boolean> {
    const current = this.store.current();
    const whole = current !== null && (await this.areHere(servingRefs(current.manifest)));
    const now = this.clock();
    const known = current && whole && within(this.askedWholeAt, now, ASKED_WHOLE_EVERY_MS);
    const etag = known ? String(shortened(current.manifest.release)) : null;
    const look = { words: REQUESTS.say("release"), purpose: "sync", etag };
    const answer = await this.client.get("/v1/releases/current", look);
    if (answer.status === 304) {
      await this.checkChain(now);
      return false;
    }
    this.askedWholeAt = now;
    const signed = parsed(signedManifest, answer.body, "release");
    const manifest = await this.verified(signed);
    if (current && signed.manifest === current.signed.manifest) {
      if (whole) {
        await this.checkChain(now);
        return false;
      }
    } else if (!current || this.isOfAnotherServer(signed, current)) requireSaneDate(manifest, now);
    else if (isOldNews(signed, manifest, this.store)) return false;
    else {
      requireSaneDate(manifest, now);
      await requireSuccessor(manifest, current, this.store, this.client, now, this.primitives);
    }
    await Promise.all([this.graphs.prepare(), this.fetchBlobs(manifest, servingRefs(manifest))]);
    await new Release(manifest, this.store.blobs).check(this.graphs);
    await this.install(signed, manifest, current);
    return true;
  }

  /**
   * Fetches the rest of the current release: models for rounds. Throws ReleaseRefused for a part that fails its check;
   * loading one later checks it again. HttpClient's network errors.
   */
  complete(): Promise<void> {
    const current = this.store.current();
    if (!current) return Promise.resolve();
    const of = current.signed.manifest;
    if (this.completing?.of === of) return this.completing.done;
    const done = this.fetchRest(current).finally(() => {
      if (this.completing?.done === done) this.completing = null;
    });
    this.completing = { of, done };
    return done;
  }

  private async fetchRest({ manifest, signed }: StoredRelease): Promise<void> {
    const all = blobRefs(manifest);
    if (this.restChecked === signed.manifest && (await this.areHere(all))) return;
    await this.fetchBlobs(manifest, all);
    await new Release(manifest, this.store.blobs).checkRest();
    this.restChecked = signed.manifest;
  }

  private async areHere(refs: ReadonlyMap<string, BlobRef>): Promise<boolean> {
    for (const name of refs.keys()) if (!(await this.store.blobs.has(name))) return false;
    return true;
  }

  /**
   * Whether the reader has set a key other than the current release's signer, and this release is signed with it. A key
   * connected to it by rotations that this device has followed belongs to the same server.
   */
  private isOfAnotherServer(signed: SignedManifest, current: StoredRelease): boolean {
    const pinned = this.pinnedKey;
    if (!pinned || !sameBytes(signed.public_key, pinned) || sameBytes(pinned, current.signed.public_key)) return false;
    const kept = this.store.trustedKey();
    return !kept || kept.rotation === 0 || !(sameBytes(pinned, kept.first) || sameBytes(pinned, kept.publicKey));
  }

  private async checkChain(now: number): Promise<void> {
    if (within(this.chainCheckedAt, now, CHAIN_CHECKED_EVERY_MS)) return;
    try {
      await requireInChain(this.client, this.store);
    } catch (refused) {
      // a server failure says nothing against its releases; the next poll tries again
      if (refused instanceof BackendRefused && refused.problem.status >= 500) return;
      throw refused;
    }
    this.chainCheckedAt = now;
  }

  private async verified(signed: SignedManifest): Promise<ReleaseManifest> {
    const trusted = this.store.trustedKey(this.pinnedKey);
    const another = trusted && !sameBytes(trusted.publicKey, signed.public_key);
    const followed = another ? await successor(this.client, trusted, signed.public_key, this.primitives) : null;
    let manifest: ReleaseManifest;
    try {
      manifest = await verifyRelease(signed, signed.public_key, this.primitives);
    } catch (broken) {
      if (broken instanceof SignatureRefused) throw new ReleaseRefused("offered now", broken.message);
      if (broken instanceof WireError)
        throw new ReleaseRefused("offered now", `its manifest is malformed: ${broken.message}`);
      throw broken;
    }
    if (followed) this.store.pinSuccessor(followed, this.clock());
    return manifest;
  }

  private async fetchBlobs(manifest: ReleaseManifest, wanted: ReadonlyMap<string, BlobRef>): Promise<void> {
    const total = [...blobRefs(manifest).values()].reduce((sum, ref) => sum + ref.size_bytes, 0);
    if (total > RELEASE_LIMIT_BYTES)
      throw new ReleaseRefused(manifest.release, `it has ${total} bytes, the limit is ${RELEASE_LIMIT_BYTES}`);
    const { blobs } = this.store;
    for (const group of groupsOf(wanted.values())) {
      const kept = await Promise.all(group.map((ref) => blobs.read(ref.sha256)));
      const missing = group.filter((_, at) => kept[at] === null);
      if (!missing.length) continue;
      const contents = await fetchBlobs(this.client, missing, manifest.release);
      await Promise.all(contents.map((content) => blobs.put(content)));
    }
  }

  private async install(signed: SignedManifest, manifest: ReleaseManifest, current: StoredRelease | null): Promise<void> {
    const now = this.clock();
    if (!this.pinnedKey && !this.store.pinnedKey()) this.store.pin(signed.public_key, now);
    if (!current || signed.manifest !== current.signed.manifest) {
      const replacesChain = current !== null && this.isOfAnotherServer(signed, current);
      const key = signed.public_key;
      if (replacesChain) this.store.pinSuccessor({ publicKey: key, first: key, rotation: 0 }, now);
      this.store.install(signed, now, await linkOf(signed, manifest, this.primitives), { replacesChain });
      this.chainCheckedAt = null;
    }
    await this.store.pruneBlobs();
  }
}

function within(before: number | null, now: number, span: number): boolean {
  return before !== null && now >= before && now - before < span;
}
