// Verified releases on the device, the key they are checked with, and their blobs.
import { readMessage, type Bytes } from "../protocol/forms";
import {
  type BlobRef,
  type ModelEntry,
  type ReleaseManifest,
  type SignedManifest,
  releaseManifest,
  sameBytes,
} from "../protocol/releases";
import type { Blobs } from "./blobs";
import { fromUs, toUs, type Database } from "./database";

export const RELEASES_KEPT = 50;
const RELEASES_WITH_BLOBS = 2;

/** A release whose parts for feeds and reports passed every check when it was installed. */
export interface StoredRelease {
  readonly signed: SignedManifest;
  readonly manifest: ReleaseManifest;
  readonly installedAt: number;
}

/**
 * publicKey: must sign what this device accepts. first: the key that the reader started with. rotation: the number of
 * the last rotation from it, 0 for none.
 */
export interface TrustedKey {
  readonly publicKey: Bytes;
  readonly first: Bytes;
  readonly rotation: number;
}

/** A release that this device has used, and the chain's head at it. */
export interface ChainLink {
  readonly number: number;
  readonly manifestSha256: string;
  readonly head: string;
}

type ReleaseRow = { manifest: string; signature: Bytes; public_key: Bytes; installed_at: number };

/** Installed releases; the current one is the last installed. */
export class InstalledReleases {
  private newest: StoredRelease | null | undefined;

  constructor(
    private readonly database: Database,
    readonly blobs: Blobs,
  ) {
    database.whenUndone(() => (this.newest = undefined));
  }

  /** The current release. */
  current(): StoredRelease | null {
    if (this.newest === undefined) this.newest = this.history(1)[0] ?? null;
    return this.newest;
  }

  /** Installed releases, newest first. */
  history(limit = RELEASES_KEPT): StoredRelease[] {
    return this.database
      .rows<ReleaseRow>(
        "SELECT manifest, signature, public_key, installed_at FROM release ORDER BY id DESC LIMIT ?",
        [limit],
      )
      .map((row) => ({
        signed: { manifest: row.manifest, signature: row.signature, public_key: row.public_key },
        manifest: readMessage(releaseManifest, row.manifest),
        installedAt: fromUs(row.installed_at),
      }));
  }

  /** The last installed manifest of this name, and how many were installed since; null if no longer kept. */
  installed(release: string): readonly [ReleaseManifest, number] | null {
    const row = this.database.one<{ manifest: string; since: number }>(
      `SELECT manifest, (SELECT count(*) FROM release AS later WHERE later.id > release.id) AS since FROM release
       WHERE release = ? ORDER BY id DESC LIMIT 1`,
      [release],
    );
    return row ? [readMessage(releaseManifest, row.manifest), row.since] : null;
  }

  /**
   * Makes a verified release current, in one transaction; its blobs must be here. link: the chain's new end.
   * replacesChain: the release is from another server, whose chain replaces the old one.
   */
  install(signed: SignedManifest, at: number, link: ChainLink, { replacesChain = false } = {}): void {
    const manifest = readMessage(releaseManifest, signed.manifest);
    this.database.transaction(() => {
      const kept = this.database.one<{ id: number }>(
        `INSERT INTO release (release, manifest, signature, public_key, installed_at) VALUES (?, ?, ?, ?, ?)
         RETURNING id`,
        [manifest.release, signed.manifest, signed.signature, signed.public_key, toUs(at)],
      );
      this.database.run("DELETE FROM release WHERE id <= ?", [(kept?.id ?? 0) - RELEASES_KEPT]);
      if (replacesChain) this.database.run("DELETE FROM release_chain");
      this.database.run("INSERT OR REPLACE INTO release_chain (number, manifest_sha256, head) VALUES (?, ?, ?)", [
        link.number,
        link.manifestSha256,
        link.head,
      ]);
      this.newest = undefined;
    });
  }

  /** The newest release of the chain that this device has used; null before the first. */
  chained(): ChainLink | null {
    const row = this.database.one<{ number: number; manifest_sha256: string; head: string }>(
      "SELECT number, manifest_sha256, head FROM release_chain ORDER BY number DESC LIMIT 1",
    );
    return row ? { number: row.number, manifestSha256: row.manifest_sha256, head: row.head } : null;
  }

  /** Removes blobs that neither the current nor the previous release needs; returns their number. */
  pruneBlobs(): Promise<number> {
    return this.blobs.prune(this.history(RELEASES_WITH_BLOBS).flatMap((kept) => [...blobRefs(kept.manifest).keys()]));
  }

  /** The Ed25519 public key trusted on first use, or the one it was rotated to. */
  pinnedKey(): Bytes | null {
    return this.database.one<{ public_key: Bytes }>("SELECT public_key FROM pinned_key")?.public_key ?? null;
  }

  /**
   * Returns the key that must have signed the server's messages; null before the first release. fromSettings: the
   * reader's choice. It takes precedence over the first key seen; if it was rotated, its successor is returned.
   */
  trustedKey(fromSettings: Bytes | null = null): TrustedKey | null {
    const row = this.database.one<{ public_key: Bytes; first: Bytes; rotation: number }>(
      "SELECT public_key, coalesce(first_key, public_key) AS first, rotation FROM pinned_key",
    );
    const kept = row ? { publicKey: row.public_key, first: row.first, rotation: row.rotation } : null;
    if (fromSettings === null) return kept;
    if (kept && (sameBytes(fromSettings, kept.first) || sameBytes(fromSettings, kept.publicKey))) return kept;
    return { publicKey: fromSettings, first: fromSettings, rotation: 0 };
  }

  /** Trusts this key from now on; throws RangeError if another is pinned. */
  pin(publicKey: Bytes, at: number): void {
    this.database.transaction(() => {
      const pinned = this.pinnedKey();
      if (pinned && !sameBytes(pinned, publicKey)) throw new RangeError("another key is already pinned");
      this.database.run(
        `INSERT INTO pinned_key (only, public_key, pinned_at, first_key) VALUES (1, ?, ?, ?) ON CONFLICT DO NOTHING`,
        [publicKey, toUs(at), publicKey],
      );
    });
  }

  /** Replaces the pinned key by the one that rotations lead to, or that the reader names. */
  pinSuccessor(key: TrustedKey, at: number): void {
    const sql = "INSERT OR REPLACE INTO pinned_key (only, public_key, pinned_at, first_key, rotation) VALUES (1, ?, ?, ?, ?)";
    this.database.transaction(() => this.database.run(sql, [key.publicKey, toUs(at), key.first, key.rotation]));
  }
}

/** A release's blobs for feeds and reports, by hash; the others are models used in rounds. */
export function servingRefs(manifest: ReleaseManifest): Map<string, BlobRef> {
  const serving = ["recall", manifest.default_ranker];
  return refsOf(manifest, [...manifest.models].flatMap(([name, model]) => (serving.includes(name) ? [model] : [])));
}

/** All blobs of a release, by hash: graphs, weights, groups, codebooks' prototypes. */
export function blobRefs(manifest: ReleaseManifest): Map<string, BlobRef> {
  return refsOf(manifest, [...manifest.models.values()]);
}

function refsOf(manifest: ReleaseManifest, models: readonly ModelEntry[]): Map<string, BlobRef> {
  const refs: (BlobRef | null)[] = models.flatMap((model) => [...model.graphs.values(), model.weights]);
  for (const { groups } of models)
    if (groups) refs.push(groups.weights, groups.centroids, groups.vectors, groups.next_centroids, groups.next_vectors);
  refs.push(...manifest.recall.codebooks.map((book) => book.prototypes));
  return new Map(refs.flatMap((ref) => (ref ? [[ref.sha256, ref] as const] : [])));
}
