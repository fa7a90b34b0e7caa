// Assembles a device's trainer from its store, client and ledger.
import type { Ledger } from "../privacy/accounting/ledger";
import type { PrivacySettings } from "../privacy/settings";
import { FEATURES } from "../ranking/ranker";
import type { Graphs } from "../ranking/session";
import { Clicks } from "../store/clicks";
import { CountLog, Participations } from "../store/participations";
import type { ImpressionStore } from "../store/impressions";
import type { NewsStore } from "../store/news";
import { PrivateParameters } from "../store/preferences";
import type { InstalledReleases } from "../store/releases";
import { currentRelease } from "../sync/installed_release";
import { MaterialSync } from "../sync/release_blobs";
import type { HttpClient } from "../uplink/http";
import { RoundsUplink } from "../uplink/backend_client";
import { rowOf } from "../vectors";
import { ComputationFactory } from "./computation";
import { ReaderConsent } from "./eligibility";
import { DueUpdates } from "./due_updates";
import { graphLoader } from "./gradients";
import { pastFeatures, StoredSamples } from "./samples";
import { TASKS } from "./tasks/registry";
import { Trainer, type TrainerParts } from "./trainer";

/** What a device gives its trainer. */
export interface TrainingNeeds extends Pick<
  TrainerParts,
  "database" | "primitives" | "noise" | "clock" | "trustedKey"
> {
  /** The device's own instances, which are notified of viewed and replaced articles. */
  readonly impressions: ImpressionStore;
  readonly news: NewsStore;
  readonly client: HttpClient;
  readonly releases: InstalledReleases;
  readonly ledger: Ledger;
  readonly privacy: () => PrivacySettings;
  readonly graphs: Graphs;
  readonly halfLifeHours: number;
  /** Mean seconds from getting a place in a round to sending its update. */
  readonly sendSec: number;
  /** Uniform in [0, 1); cryptographic on a device. */
  readonly chance: () => number;
  /** Resolves when no page waits for an answer. */
  readonly pagesFirst?: () => Promise<void>;
  /** Whether the reader has paused training. */
  readonly paused: () => boolean;
  /** Clicked articles of muted interests, which are excluded from training. */
  readonly muted: () => ReadonlySet<string>;
}

/** Makes one device's trainer. */
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
    needs.pagesFirst,
  );
  return new Trainer({
    release: async () => currentRelease(releases),
    computations,
    updates: new DueUpdates(clock, needs.sendSec, needs.chance),
    database,
    participations: new Participations(database),
    uplink: new RoundsUplink(client),
    consent: new ReaderConsent(ledger, needs.privacy, TASKS, needs.paused),
    trustedKey: needs.trustedKey,
    primitives: needs.primitives,
    noise,
    clock,
  });
}

/** Vectors by id, for those that this device has. */
function heldVectors(news: NewsStore, ids: readonly string[], encoder: string): ReadonlyMap<string, Float32Array> {
  const { present, vectors } = news.vectors(ids, encoder);
  return new Map(ids.flatMap((newsId, row) => (present[row] ? [[newsId, rowOf(vectors, row)] as const] : [])));
}
