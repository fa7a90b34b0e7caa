// A device's trainer, made of its store, its client and its ledger.
import type { Ledger } from "../privacy/ledger";
import type { NoiseSource } from "../privacy/noise_sources";
import { FEATURES } from "../ranking/features";
import type { Graphs } from "../ranking/session";
import { Clicks } from "../store/clicks";
import { CountLog } from "../store/count_log";
import type { Database } from "../store/database";
import type { ImpressionStore } from "../store/impressions";
import type { NewsStore } from "../store/news";
import { PrivateParameters } from "../store/parameters";
import { Participations } from "../store/participations";
import type { InstalledReleases } from "../store/releases";
import { currentRelease } from "../sync/installed_release";
import { MaterialSync } from "../sync/release_blobs";
import type { HttpClient } from "../uplink/http";
import { RoundsUplink } from "../uplink/rounds";
import { rowOf } from "../vectors";
import type { Primitives } from "../wire/primitives";
import type { Bytes } from "../wire/values";
import { ComputationFactory } from "./computation";
import { ReaderConsent } from "./consent";
import { graphLoader } from "./graphs";
import { pastFeatures } from "./past";
import { StoredSamples } from "./stored_samples";
import { TASKS } from "./tasks/registry";
import { Trainer } from "./trainer";

/** What a trainer is made of. */
export interface TrainingNeeds {
  readonly database: Database;
  /** The device's own, which are told what its reader looks at and what of the news is replaced. */
  readonly impressions: ImpressionStore;
  readonly news: NewsStore;
  readonly client: HttpClient;
  readonly releases: InstalledReleases;
  readonly ledger: Ledger;
  readonly graphs: Graphs;
  readonly primitives: Primitives;
  /** Cryptographic on a device. */
  readonly noise: NoiseSource;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  readonly halfLifeHours: number;
  /** How long the reader must have read nothing. */
  readonly idleSec: number;
  /** Whether the reader has paused training. */
  readonly paused: () => boolean;
  /** Clicked news of muted interests, which nothing is learnt from. */
  readonly muted: () => ReadonlySet<string>;
  /** The Ed25519 key that must have signed an offer; null while there is none. */
  readonly trustedKey: () => Bytes | null;
}

/** The trainer of one device. */
export function trainerOf(needs: TrainingNeeds): Trainer {
  const { database, impressions, news, client, releases, ledger, noise, clock } = needs;
  const reading = new StoredSamples(
    new Clicks(database),
    impressions,
    (ids, encoder) => heldVectors(news, ids, encoder),
    pastFeatures(news, impressions, needs.halfLifeHours),
    new CountLog(database),
    needs.muted,
  );
  const materials = new MaterialSync(client, releases.blobs);
  const computations = new ComputationFactory(
    reading,
    new PrivateParameters(database),
    (ref) => materials.fetch(ref),
    graphLoader(needs.graphs),
    new Set(FEATURES.keys()),
    TASKS,
    noise,
    clock,
  );
  return new Trainer({
    release: async () => currentRelease(releases),
    computations,
    database,
    participations: new Participations(database),
    uplink: new RoundsUplink(client),
    consent: new ReaderConsent(ledger, reading, TASKS, needs.paused, needs.idleSec),
    trustedKey: needs.trustedKey,
    primitives: needs.primitives,
    noise,
    clock,
  });
}

/** By id, of those that this device has. */
function heldVectors(news: NewsStore, ids: readonly string[], encoder: string): ReadonlyMap<string, Float32Array> {
  const { present, vectors } = news.vectors(ids, encoder);
  return new Map(ids.flatMap((newsId, row) => (present[row] ? [[newsId, rowOf(vectors, row)] as const] : [])));
}
