// Keeps the last answer to a report, across restarts too, and the outcome of the last request.
import type { BudgetSpent, DeviceError } from "../errors";
import type { NewsStore } from "../store/news";
import { LAST_ANSWER, type Preferences } from "../store/preferences";
import { taken } from "../vectors";
import type { RecallAnswer } from "../protocol/recall";
import { Candidates, candidatesOf, placesOf, together } from "./candidates";
import type { VectorsIncomplete } from "../reports/choice";

/** The outcome of a request: why no new report was drawn for it, and what failed. */
export interface LastRequest {
  readonly why?: BudgetSpent | VectorsIncomplete | null;
  readonly trouble?: DeviceError;
  readonly movedOn?: boolean;
}

interface Kept {
  readonly found: Candidates;
  readonly blank: boolean;
  /** null: from an earlier run. */
  readonly answer: RecallAnswer | null;
}

interface StoredAnswer {
  readonly encoder: string;
  readonly ids: readonly string[];
  readonly blank: boolean;
}

/**
 * Keeps at most one answer. Its ids are sensitive; cards and vectors are in the article store, so that a restart can
 * reuse it. An erase deletes everything.
 */
export class RecallAnswers {
  asked: LastRequest = {};
  private kept: Kept | null = null;
  private looked = false;
  private both: readonly [Candidates, Candidates, Candidates] | null = null;

  constructor(
    private readonly preferences: Preferences,
    private readonly news: NewsStore,
  ) {}

  /** Drops the kept answer and the outcome of the last request. */
  forget(): void {
    this.preferences.set(LAST_ANSWER, null);
    this.kept = this.both = null;
    this.asked = {};
  }

  /**
   * Keeps a received answer and returns its candidates. blank: whether it answers a blank report. Throws
   * AnswerMalformed.
   */
  keep(answer: RecallAnswer, dimensions: number, { blank }: { blank: boolean }): Candidates {
    const found = this.kept?.answer === answer ? this.kept.found : candidatesOf(answer, dimensions);
    this.preferences.set(LAST_ANSWER, { encoder: found.encoder, ids: found.ids, blank } satisfies StoredAnswer);
    this.kept = { found, blank, answer };
    return found;
  }

  /** The candidates of the kept answer; it may answer any earlier report. */
  found(): Candidates | null {
    return this.inUse()?.found ?? null;
  }

  /** The candidates of the kept answer for this reader and encoder; null if it answers a blank report. */
  personal(encoder: string): Candidates | null {
    const kept = this.inUse();
    return kept && !kept.blank && kept.found.encoder === encoder ? kept.found : null;
  }

  /** The answer in memory; before the first of this run, that of the last run. */
  private inUse(): Kept | null {
    if (!this.kept && !this.looked) {
      this.looked = true;
      this.kept = this.ofLastRun();
    }
    return this.kept;
  }

  /** Returns what is left of the previous run's answer, with vectors; null if nothing. */
  private ofLastRun(): Kept | null {
    const stored = this.preferences.get(LAST_ANSWER) as StoredAnswer | null;
    if (!stored) return null;
    const cards = this.news.cards(stored.ids);
    const { present, vectors } = this.news.vectors(cards.map((card) => card.id), stored.encoder);
    const here = placesOf(present);
    if (!here.length) return null;
    const found = new Candidates(here.map((row) => cards[row] as (typeof cards)[number]), taken(vectors, here), stored.encoder);
    return { found, blank: stored.blank, answer: null };
  }

  /** Cached `together`: both arguments outlive a feed. */
  joined(found: Candidates, defaultList: Candidates): Candidates {
    if (this.both?.[0] !== found || this.both[1] !== defaultList) {
      const another = defaultList.length > 0 && found.encoder !== defaultList.encoder;
      this.both = [found, defaultList, another ? defaultList : together(found, defaultList)];
    }
    return this.both[2];
  }
}
