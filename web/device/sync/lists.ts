// Pulls what is the same for every device: the default list of recent articles, and popularity.
import { AnswerMalformed, BackendRefused, NoRelease } from "../errors";
import type { Clock } from "../protocol/moments";
import { digest } from "../privacy/sealed";
import type { DefaultListStore, PopularityStore } from "../store/default_list";
import type { NewsStore } from "../store/news";
import type { InstalledReleases } from "../store/releases";
import { parsed, readVectors } from "../uplink/backend_client";
import { REQUESTS, etagOf, type HttpClient } from "../uplink/http";
import { shortened } from "../protocol/ids";
import { WireError } from "../protocol/forms";
import { popularity } from "../protocol/popularity";
import { type DefaultListAnswer, defaultListAnswer, listed } from "../protocol/recall";
import type { ReleaseManifest } from "../protocol/releases";

const POPULARITY_LIMIT_BYTES = 8 * 1024 * 1024;
/** Statuses of a server without popularity, behind this release, or ahead of it: the stored answer stays. */
const NOT_NOW: readonly number[] = [404, 409, 410, 503];

/** The current manifest. Throws NoRelease before the first. */
export function manifestInUse(releases: InstalledReleases): ReleaseManifest {
  const kept = releases.current();
  if (!kept) throw new NoRelease();
  return kept.manifest;
}

function idsOf(found: DefaultListAnswer, earlier: readonly string[]): string[] {
  try {
    return listed(found, earlier);
  } catch (wrong) {
    throw wrong instanceof WireError ? new AnswerMalformed("default list", wrong.message) : wrong;
  }
}

/** Keeps the default list and its articles up to date. */
export class DefaultListSync {
  constructor(
    private readonly client: HttpClient,
    private readonly defaultList: DefaultListStore,
    private readonly news: NewsStore,
    private readonly releases: InstalledReleases,
    private readonly clock: Clock,
    private readonly limit: () => number,
  ) {}

  /**
   * Pulls the list if it changed, or its changes, and stores it with its cards and vectors; null if unchanged. The
   * request names the list that this device has, which everybody got at that time. Throws NoRelease, HttpClient's
   * errors, AnswerMalformed; the old list then stays.
   */
  async refresh(): Promise<DefaultListAnswer | null> {
    const manifest = manifestInUse(this.releases);
    const kept = this.defaultList.current();
    const etag = kept && !this.news.missing(kept.newsIds).length ? kept.etag : null;
    const since = etag ? `&since=${encodeURIComponent(etag)}` : "";
    const look = { words: REQUESTS.say("default_list"), purpose: "sync", etag };
    const answer = await this.client.get(`/v1/news/front?limit=${this.limit()}${since}`, look);
    if (answer.status === 304) return null;
    const found = parsed(defaultListAnswer, answer.body, "default list");
    const vectors = readVectors(found, manifest.dimensions);
    const { release, encoder, candidates } = found;
    if (found.order && (!since || encoder !== kept?.encoder))
      throw new AnswerMalformed("default list", "order: changes of a list that this device doesn't have");
    const newsIds = idsOf(found, kept?.newsIds ?? []);
    const now = this.clock();
    this.news.put(candidates, vectors, encoder, now);
    this.defaultList.keep({ etag: etagOf(answer), release, encoder, newsIds, keptAt: now });
    return found;
  }
}

/**
 * Keeps the latest popularity answer. The ETag is computed here from the answer's bytes, so that it can't be used to
 * mark this device.
 */
export class PopularitySync {
  constructor(
    private readonly client: HttpClient,
    private readonly store: PopularityStore,
    private readonly releases: InstalledReleases,
    private readonly clock: Clock,
  ) {}

  /** Polls for a new answer; true if there was one. Throws NoRelease, AnswerMalformed, HttpClient's errors. */
  async refresh(): Promise<boolean> {
    const name = manifestInUse(this.releases).release;
    const kept = this.store.current();
    const look = {
      words: REQUESTS.say("popularity"),
      purpose: "sync",
      etag: kept && etagOfBytes(kept.content),
      limitBytes: POPULARITY_LIMIT_BYTES,
    };
    try {
      const answer = await this.client.get(`/v1/releases/${shortened(name)}/popularity`, look);
      if (answer.status === 304) return false;
      const received = parsed(popularity, answer.body, "popularity");
      if (received.release !== name)
        throw new AnswerMalformed("popularity", `it is for ${received.release}, this device asked for ${name}`);
      this.store.keep(answer.body, this.clock());
      return true;
    } catch (refused) {
      if (refused instanceof BackendRefused && NOT_NOW.includes(refused.problem.status)) return false;
      throw refused;
    }
  }
}

/** The ETag that both sides compute from an answer's bytes. */
export function etagOfBytes(content: Uint8Array): string {
  return digest(content);
}
