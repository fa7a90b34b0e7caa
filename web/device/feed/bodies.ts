// Fetches the texts of whole returned lists in the background, before any story on them is opened.
import { BackendRefused, BackendUnreachable } from "../errors";
import type { Clock, Pause } from "../protocol/moments";
import { sealBlock, sealCommon, sealReturned } from "../privacy/requests";
import type { Sealed } from "../privacy/sealed";
import type { NewsStore } from "../store/news";
import type { PoolBlock } from "../store/pool_codes";
import type { Uplink } from "../uplink/backend_client";
import type { Vectors } from "../vectors";
import type { BodiesRequest } from "../protocol/news";
import type { RecallAnswer } from "../protocol/recall";

const LISTS_WAITING = 4;
/**
 * The default list and blocks of the pool aren't requested again within this time if all their texts came. A list that
 * answers a report is requested every time, so that nobody can see whether it changed.
 */
const AGAIN_AFTER_MS = 3_600_000;
/** How often a list whose texts are refused is tried, although the server answers; then it is dropped. */
const TRIES = 3;
const BUSY: readonly number[] = [429, 503];

/** A list to fetch, and what to store of it. A block of the pool is already stored. */
interface Wanted {
  readonly ids: readonly string[];
  /** The default list, one that answers a report, or a block of the pool. */
  readonly kind: "common" | "answer" | "block";
  readonly sealed: () => Sealed<BodiesRequest>;
  readonly list?: { readonly answer: RecallAnswer; readonly vectors: Vectors };
  readonly failures: number;
}

/**
 * Fetches texts one list at a time: every id of an answer in one request, never a selection.
 *
 * Whether and when a list is fetched depends only on the lists, which the backend made, not on what the reader opens.
 * The exception, in mode `broadcast` only, is an article that this device found itself: its text is fetched when it is
 * opened, together with a whole block of the pool.
 */
export class Bodies {
  private waiting: Wanted[] = [];
  private underWay: Wanted | null = null;
  private fetching = false;
  /** Number of requested fetches that are still pausing before they start. */
  private pausing = 0;
  private fetched = new Map<string, number>();
  private watchers: (() => void)[] = [];
  private lost = false;

  constructor(
    private readonly uplink: Uplink,
    private readonly store: NewsStore,
    private readonly clock: Clock,
    private readonly pause: Pause = async () => undefined,
  ) {}

  /** Returns whether fetching texts of the default list was given up since the last call. */
  lostSome(): boolean {
    const { lost } = this;
    this.lost = false;
    return lost;
  }

  /** Queues a returned list (vectors [R, D], in its order). common: whether it is the default list. */
  want(answer: RecallAnswer, vectors: Vectors, { common = false } = {}): void {
    const ids = answer.candidates.map((card) => card.id);
    const sealed = (): Sealed<BodiesRequest> => (common ? sealCommon(answer) : sealReturned(answer));
    const kind = common ? "common" : "answer";
    if (ids.length) this.queue({ ids, kind, sealed, list: { answer, vectors }, failures: 0 });
  }

  /** Queues the block of the pool that contains an opened story. */
  wantBlock(block: PoolBlock): void {
    this.queue({ ids: block.ids, kind: "block", sealed: () => sealBlock(block), failures: 0 });
  }

  /**
   * Fetches the waiting lists one by one, pauseMs from now and after any fetch under way. Throws the errors of `step`;
   * the rest then waits for the next call.
   */
  async fetchAll(pauseMs = 0): Promise<void> {
    await this.after(pauseMs);
    while (this.fetching) await new Promise<void>((done) => this.watchers.push(done));
    await this.fetch(() => true);
  }

  /** Like `fetchAll`, but skips the default list and does nothing while another fetch is under way. */
  async fetchReturned(): Promise<void> {
    if (!this.fetching) await this.fetch(({ kind }) => kind !== "common");
  }

  private async after(pauseMs: number): Promise<void> {
    if (!pauseMs) return;
    this.pausing += 1;
    try {
      await this.pause(pauseMs);
    } finally {
      this.pausing -= 1;
    }
  }

  private async fetch(which: (list: Wanted) => boolean): Promise<void> {
    this.fetching = true;
    try {
      for (let next = this.waiting.find(which); next; next = this.waiting.find(which)) await this.step(next);
    } finally {
      this.fetching = false;
      for (const watcher of this.watchers.splice(0)) watcher();
    }
  }

  private queue(wanted: Wanted): void {
    // one request per answer, and none for an answer that a later one has replaced
    if (wanted.kind === "answer") this.waiting = this.waiting.filter(({ kind }) => kind !== "answer");
    const known = [...this.waiting, ...(this.underWay ? [this.underWay] : [])];
    if (wanted.kind !== "answer" && known.some((one) => one.ids.length === wanted.ids.length && one.ids.every((id, at) => id === wanted.ids[at]))) return;
    this.waiting.push(wanted);
    while (this.waiting.length > LISTS_WAITING) this.noteLost(this.waiting.shift());
  }

  private noteLost(givenUp: Wanted | undefined): void {
    this.lost ||= givenUp?.kind === "common";
  }

  /**
   * Stores a waiting list and fetches its texts. Throws the errors of `Uplink.bodies`. If the backend is busy or
   * unreachable, the list stays first. After any other error it goes to the end, and it is dropped after the third.
   */
  private async step(current: Wanted): Promise<void> {
    this.waiting = this.waiting.filter((list) => list !== current);
    this.underWay = current;
    try {
      const { list } = current;
      if (list) this.store.put(list.answer.candidates, list.vectors, list.answer.encoder, this.clock());
      if (this.due(current)) {
        const answer = await this.uplink.bodies(current.sealed());
        this.store.putBodies(new Map(answer.bodies.map((body) => [body.id, body.body])));
        const now = this.clock();
        if (current.kind !== "answer") for (const id of current.ids) this.fetched.set(`${current.kind} ${id}`, now);
      }
    } catch (trouble) {
      this.putBack(passes(trouble) ? current : { ...current, failures: current.failures + 1 });
      throw trouble;
    } finally {
      this.underWay = null;
      for (const watcher of this.watchers.splice(0)) watcher();
    }
  }

  /** Waits, up to timeoutMs, while a list with this article is being fetched or about to be. */
  async waitFor(newsId: string, timeoutMs: number): Promise<void> {
    const until = performance.now() + timeoutMs;
    while (this.coming(newsId) && performance.now() < until) {
      await Promise.race([
        new Promise<void>((done) => this.watchers.push(done)),
        new Promise<void>((done) => setTimeout(done, until - performance.now())),
      ]);
    }
  }

  private coming(newsId: string): boolean {
    const lists = [...(this.underWay ? [this.underWay] : []), ...this.waiting];
    return (this.fetching || this.pausing > 0) && lists.some((list) => list.ids.includes(newsId));
  }

  /**
   * Puts a list back at the front if the failure wasn't its own, otherwise at the end if there is room and tries are
   * left.
   */
  private putBack(current: Wanted): void {
    if (current.kind === "answer" && this.waiting.some(({ kind }) => kind === "answer")) return;
    if (current.failures === 0) this.waiting.unshift(current);
    else if (current.failures < TRIES && this.waiting.length < LISTS_WAITING) this.waiting.push(current);
    else this.noteLost(current);
  }

  private due({ kind, ids }: Wanted): boolean {
    if (kind === "answer") return true;
    const now = this.clock();
    this.fetched = new Map([...this.fetched].filter(([, at]) => Math.abs(now - at) < AGAIN_AFTER_MS));
    return ids.some((id) => !this.fetched.has(`${kind} ${id}`));
  }
}

/** Returns whether the error would affect the next list too, so that this one may succeed later. */
function passes(trouble: unknown): boolean {
  return (
    trouble instanceof BackendUnreachable || (trouble instanceof BackendRefused && BUSY.includes(trouble.problem.status))
  );
}
