// Pulling what is the same for every device: the default list of recent news, and what is popular.
import { AnswerMalformed, BackendRefused, NoRelease } from "../errors";
import type { Clock } from "../moments";
import { digest } from "../privacy/sealed";
import type { DefaultListStore } from "../store/default_list";
import type { NewsStore } from "../store/news";
import type { PopularityStore } from "../store/popularity";
import type { InstalledReleases } from "../store/releases";
import { parsed, readVectors } from "../uplink/answers";
import { type HttpClient, etagOf } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import { shortened } from "../wire/ids";
import { popularity } from "../wire/popularity";
import { type RecallAnswer, recallAnswer } from "../wire/recall";
import type { ReleaseManifest } from "../wire/releases";

const POPULARITY_LIMIT_BYTES = 8 * 1024 * 1024;
/** A backend that does not tell, is behind its release, or has moved on: what is here stays. */
const NOT_NOW: readonly number[] = [404, 409, 410, 503];

/** The manifest in use. Throws NoRelease before the first. */
export function manifestInUse(releases: InstalledReleases): ReleaseManifest {
  const kept = releases.current();
  if (!kept) throw new NoRelease();
  return kept.manifest;
}

/** Keeps the default list and the news on it. */
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
   * Pull the list if it changed and keep it with its cards and vectors; null if it's the one here. Throws NoRelease,
   * errors as in HttpClient, AnswerMalformed; the old list stays then.
   */
  async refresh(): Promise<RecallAnswer | null> {
    const manifest = manifestInUse(this.releases);
    const kept = this.defaultList.current();
    const etag = kept && !this.news.missing(kept.newsIds).length ? kept.etag : null;
    const look = { words: REQUESTS.say("default_list"), purpose: "sync", etag };
    const answer = await this.client.get(`/v1/news/front?limit=${this.limit()}`, look);
    if (answer.status === 304) return null;
    const found = parsed(recallAnswer, answer.body, "default list");
    const vectors = readVectors(found, manifest.dimensions);
    const now = this.clock();
    const { release, encoder, candidates } = found;
    this.news.put(candidates, vectors, encoder, now);
    const newsIds = candidates.map((card) => card.id);
    this.defaultList.keep({ etag: etagOf(answer), release, encoder, newsIds, keptAt: now });
    return found;
  }
}

/**
 * Keeps the last answer of what is popular. The ETag is computed here, from the answer's bytes, so that it can't be made
 * a mark of this device.
 */
export class PopularitySync {
  constructor(
    private readonly client: HttpClient,
    private readonly store: PopularityStore,
    private readonly releases: InstalledReleases,
    private readonly clock: Clock,
  ) {}

  /** Look for another answer; true if there was one. Throws NoRelease, AnswerMalformed, errors as HttpClient. */
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
      const told = parsed(popularity, answer.body, "popularity");
      if (told.release !== name)
        throw new AnswerMalformed("popularity", `it is for ${told.release}, this device asked for ${name}`);
      this.store.keep(answer.body, this.clock());
      return true;
    } catch (refused) {
      if (refused instanceof BackendRefused && NOT_NOW.includes(refused.problem.status)) return false;
      throw refused;
    }
  }
}

/** The ETag that both ends compute of an answer's bytes. */
export function etagOfBytes(content: Uint8Array): string {
  return digest(content);
}
