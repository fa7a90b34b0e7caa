// Pulling releases: signature, hashes and a trial run first, then one swap.
import { BackendRefused, ReleaseRefused } from "../errors";
import { type Clock, DAY_MS, HOUR_MS } from "../moments";
import { type InstalledReleases, type KeptRelease, blobRefs, servingRefs } from "../store/releases";
import { parsed } from "../uplink/answers";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import { WireError } from "../wire/forms";
import { shortened } from "../wire/ids";
import type { Primitives } from "../wire/primitives";
import {
  type BlobRef,
  type ReleaseManifest,
  SignatureRefused,
  type SignedManifest,
  sameBytes,
  signedManifest,
  verifyRelease,
} from "../wire/releases";
import type { Bytes } from "../wire/values";
import type { Graphs } from "../ranking/session";
import { Release } from "./installed_release";
import { fetchBlobs, groupsOf } from "./release_blobs";
import { isOldNews, linkOf, requireInChain, requireSaneDate, requireSuccessor, successor } from "./succession";

const ASKED_WHOLE_EVERY_MS = HOUR_MS;
const CHAIN_CHECKED_EVERY_MS = DAY_MS;
const RELEASE_LIMIT_BYTES = 256 * 1024 * 1024;

/**
 * Keeps the release in use up to date.
 *
 * The key: `pinnedKey` if given, else the one pinned in the store; on the first sync of a device without either, the
 * backend's own, which is pinned once the release has passed (trust on first use). A release under another key is taken
 * if rotations lead to it from the trusted one. A release must follow from the one in use; once a day, and with each new
 * release, the one in use is looked for in the list of releases that everybody gets.
 *
 * What it asks depends only on which release and blobs are here. The ETag sent is the number of the release in use modulo
 * 16, so that it can't serve as a mark; once an hour none is sent, as a release 16 ahead has the same.
 */
export class ReleaseSync {
  private askedWholeAt: number | null = null;
  private chainCheckedAt: number | null = null;
  private completing: { readonly of: string; readonly done: Promise<void> } | null = null;
  /** The signed manifest whose models for rounds have passed their check. */
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
   * Look for a release; true if another one (or a repaired one) is in use now, with all that feeds and reports need of it.
   * Throws ReleaseRefused if it fails a check: the one in use stays. Network errors as in HttpClient.
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
   * Fetch what else the release in use has: models for rounds. Throws ReleaseRefused for a part that fails its check;
   * whoever loads one later checks it again. Network errors as in HttpClient.
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

  private async fetchRest({ manifest, signed }: KeptRelease): Promise<void> {
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
   * Whether the reader has named another key than the one in use was signed with, and this is signed with it. A key to
   * which, or from which, this device has followed rotations is of the same server.
   */
  private isOfAnotherServer(signed: SignedManifest, current: KeptRelease): boolean {
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
      // its own trouble says nothing against its releases; the next look asks again
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

  private async install(signed: SignedManifest, manifest: ReleaseManifest, current: KeptRelease | null): Promise<void> {
    const now = this.clock();
    if (!this.pinnedKey && !this.store.pinnedKey()) this.store.pin(signed.public_key, now);
    if (!current || signed.manifest !== current.signed.manifest) {
      const anew = current !== null && this.isOfAnotherServer(signed, current);
      const key = signed.public_key;
      if (anew) this.store.pinSuccessor({ publicKey: key, first: key, rotation: 0 }, now);
      this.store.install(signed, now, await linkOf(signed, manifest, this.primitives), { anew });
      this.chainCheckedAt = null;
    }
    await this.store.pruneBlobs();
  }
}

function within(before: number | null, now: number, span: number): boolean {
  return before !== null && now >= before && now - before < span;
}
