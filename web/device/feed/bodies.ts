// The texts of whole returned lists, fetched in the background before anything on them is opened.
import { BackendRefused, BackendUnreachable } from "../errors";
import type { Clock, Pause } from "../moments";
import { sealBlock, sealCommon, sealReturned } from "../privacy/list_texts";
import type { Sealed } from "../privacy/sealed";
import type { NewsStore } from "../store/news";
import type { PoolBlock } from "../store/pool_codes";
import type { Uplink } from "../uplink/backend_client";
import type { Vectors } from "../vectors";
import type { BodiesRequest } from "../wire/news";
import type { RecallAnswer } from "../wire/recall";

const LISTS_WAITING = 4;
/** A list is not asked for while all its texts came within this time, with it or with other lists. */
const AGAIN_AFTER_MS = 3_600_000;
/** So often a list is tried whose texts are refused, though the backend answers; then it is dropped. */
const TRIES = 3;
const BUSY: readonly number[] = [429, 503];

/** Of a list: what to keep of it. A block of the pool is kept already. */
interface Wanted {
  readonly ids: readonly string[];
  /** Of the list that every device gets. */
  readonly common: boolean;
  readonly sealed: () => Sealed<BodiesRequest>;
  readonly list?: { readonly answer: RecallAnswer; readonly vectors: Vectors };
  readonly failures: number;
}

/**
 * Fetches the texts of lists one list at a time: every id of an answer in one request, never a choice among them.
 *
 * Whether and when a list is fetched depends on the lists alone, which the backend made, not on what the reader opens. The
 * exception, in mode `broadcast` alone, is news that this device found by itself: its text is fetched when it is opened,
 * among a whole block of the pool.
 */
export class Bodies {
  private waiting: Wanted[] = [];
  private underWay: Wanted | null = null;
  private fetching = false;
  /** Fetches that were asked for and are to begin after a pause. */
  private pausing = 0;
  private fetched = new Map<string, number>();
  private watchers: (() => void)[] = [];

  constructor(
    private readonly uplink: Uplink,
    private readonly store: NewsStore,
    private readonly clock: Clock,
    private readonly pause: Pause = async () => undefined,
  ) {}

  /** Queue a returned list (vectors [R, D], in its order). common: whether it is the list that every device gets. */
  want(answer: RecallAnswer, vectors: Vectors, { common = false } = {}): void {
    const ids = answer.candidates.map((card) => card.id);
    const sealed = (): Sealed<BodiesRequest> => (common ? sealCommon(answer) : sealReturned(answer));
    if (ids.length) this.queue({ ids, common, sealed, list: { answer, vectors }, failures: 0 });
  }

  /** Queue a block of the pool, one of whose stories was opened. */
  wantBlock(block: PoolBlock): void {
    this.queue({ ids: block.ids, common: false, sealed: () => sealBlock(block), failures: 0 });
  }

  /**
   * Fetch what waits, one list after the other, pauseMs from now, after those of a fetch under way. Throws the errors of
   * `step`, and then the rest waits for the next call.
   */
  async fetchAll(pauseMs = 0): Promise<void> {
    await this.after(pauseMs);
    while (this.fetching) await new Promise<void>((done) => this.watchers.push(done));
    await this.fetch(() => true);
  }

  /** As `fetchAll`, but of what the reader's own page or story brought, and not while another fetch is under way. */
  async fetchReturned(pauseMs = 0): Promise<void> {
    await this.after(pauseMs);
    if (!this.fetching) await this.fetch(({ common }) => !common);
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
    const known = [...this.waiting, ...(this.underWay ? [this.underWay] : [])];
    if (known.some((one) => one.ids.length === wanted.ids.length && one.ids.every((id, at) => id === wanted.ids[at]))) return;
    this.waiting = [...this.waiting, wanted].slice(-LISTS_WAITING);
  }

  /**
   * Store a waiting list and fetch its texts. Throws the errors of `Uplink.bodies`. While the backend is busy or out
   * of reach, the list stays the next; after any other error the others go first, and at the third it is dropped.
   */
  private async step(current: Wanted): Promise<void> {
    this.waiting = this.waiting.filter((list) => list !== current);
    this.underWay = current;
    try {
      const { list } = current;
      if (list) this.store.put(list.answer.candidates, list.vectors, list.answer.encoder, this.clock());
      if (this.due(current.ids)) {
        const answer = await this.uplink.bodies(current.sealed());
        this.store.putBodies(new Map(answer.bodies.map((body) => [body.id, body.body])));
        const now = this.clock();
        for (const id of current.ids) this.fetched.set(id, now);
      }
    } catch (trouble) {
      this.putBack(passes(trouble) ? current : { ...current, failures: current.failures + 1 });
      throw trouble;
    } finally {
      this.underWay = null;
      for (const watcher of this.watchers.splice(0)) watcher();
    }
  }

  /** Wait while a list with this news is being fetched, or is one of the next, at most so long. */
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

  /** To the front if it has not failed by itself, else to the end, if there is room and it may be tried again. */
  private putBack(current: Wanted): void {
    if (current.failures === 0) this.waiting.unshift(current);
    else if (current.failures < TRIES && this.waiting.length < LISTS_WAITING) this.waiting.push(current);
  }

  private due(ids: readonly string[]): boolean {
    const now = this.clock();
    this.fetched = new Map([...this.fetched].filter(([, at]) => Math.abs(now - at) < AGAIN_AFTER_MS));
    return ids.some((id) => !this.fetched.has(id));
  }
}

/** Whether the next list would meet the same trouble, and this one may well come through later. */
function passes(trouble: unknown): boolean {
  return (
    trouble instanceof BackendUnreachable || (trouble instanceof BackendRefused && BUSY.includes(trouble.problem.status))
  );
}
