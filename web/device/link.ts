// Messages between a page and the worker that is the device.
//
// One worker serves all tabs of this browser. The tab that holds the lock runs it; the others send their questions
// through a channel. When that tab closes, the next one takes the lock and opens the same database. If the browser
// clears the store, the worker reports it, and a new worker starts with the data that the first one remembered.
import type { BuildVerdict } from "./protocol/releases";
import type { Remembered } from "./remembered";

/**
 * Requests a page or submits a form. followed: whether the reader followed a link. quietly: perform the action without
 * returning a page.
 */
export interface Asking {
  readonly address: string;
  readonly form: readonly (readonly [string, string])[] | null;
  readonly followed: boolean;
  readonly quietly: boolean;
}

/**
 * What a page asks or tells the worker, besides requesting a page. pictures: requests them by the addresses in pages.
 * persisted: whether this browser has promised to keep stored data, which a worker can't query. builds: requests the
 * verdicts on builds in the publisher's signed list, by SHA-256 in hex. quiet: asks to be notified after the device's
 * first poll, successful or not; deferrable work waits for it. usedBefore: the browser had the app before, though its
 * store is gone, which only the page can detect. putBack: what another worker of this tab remembered when its store was
 * cleared.
 */
export type Question =
  | Asking
  | { readonly pictures: readonly string[] }
  | { readonly persisted: boolean }
  | { readonly builds: readonly string[] }
  | { readonly quiet: true }
  | { readonly usedBefore: true }
  | { readonly putBack: Remembered };

/** erased: all data about the reader was erased, so no tab may keep showing it. */
export type Answer =
  | { readonly kind: "page"; readonly status: number; readonly html: string }
  | { readonly kind: "see_other"; readonly path: string; readonly erased?: true }
  | { readonly kind: "done" }
  | { readonly kind: "file"; readonly name: string; readonly type: string; readonly content: Uint8Array }
  | { readonly kind: "pictures"; readonly drawn: readonly string[] }
  | { readonly kind: "builds"; readonly verdicts: readonly BuildVerdict[] }
  | { readonly kind: "failed"; readonly words: string };

/** Whether the answer says that the reader has erased everything. */
export function hasErased(answer: Answer): boolean {
  return answer.kind === "see_other" && answer.erased === true;
}

/** A question and its answer share a random number, drawn by the sender. */
export interface Asked {
  readonly id: string;
  readonly question: Question;
}
export interface Answered {
  readonly id: string;
  readonly answer: Answer;
}

/**
 * Messages a worker sends on its own. leads: whether it has the store; if not, another worker has it and this one
 * waits. lost: the browser has cleared its store, and it will not answer again.
 */
export type Unasked = { readonly leads: boolean } | { readonly lost: Remembered };

const NAME = "ownfeed-device";
/** Number of remembered questions, to recognise repeats from a tab that missed the acknowledgement. */
const KNOWN = 500;
type Said = { asked: Asked } | { heard: string } | { answered: Answered } | { ready: true } | { cleared: Cleared };

/** The browser had cleared the store. putBack: whether the remembered data was restored. */
export interface Cleared {
  readonly putBack: boolean;
}

/**
 * Sends questions to the worker. An action is performed at most once: one that a worker acknowledged goes to no other
 * worker, and fails if that worker ends before answering.
 */
export class DeviceLink {
  private readonly channel = new BroadcastChannel(NAME);
  private readonly open = new Map<string, { question: Question; resolve: (answer: Answer) => void; heard: boolean }>();
  private leads = false;
  private worker: Worker | null = null;
  /** Questions to this tab's worker from any tab, newest last, and those without an answer yet. */
  private readonly known = new Set<string>();
  private readonly unanswered = new Set<string>();

  /**
   * script: address of the worker's bundle. api: the origin it sends requests to, '' for this one. erased: called when
   * another tab has erased the reader's data. lost: called when the browser had cleared the store of this or another
   * tab.
   */
  constructor(
    private readonly script: string,
    private readonly api: string,
    private readonly erased: () => void,
    private readonly lost: (cleared: Cleared) => void,
  ) {
    this.channel.onmessage = ({ data }: MessageEvent<Said>) => this.hear(data);
  }

  /** Runs the worker here once no other tab does. Earlier questions wait for one. */
  begin(): void {
    // held until this tab is closed or killed; the promise never settles
    void navigator.locks.request(NAME, () => {
      this.lead();
      return new Promise<never>(() => {});
    });
  }

  ask(question: Question): Promise<Answer> {
    const id = crypto.randomUUID();
    return new Promise((resolve) => {
      this.open.set(id, { question, resolve, heard: false });
      this.send({ id, question });
    });
  }

  private send(question: Asked): void {
    if (!this.leads) return this.say({ asked: question });
    this.heard(question.id);
    this.deliver(question);
  }

  private say(message: Said): void {
    this.channel.postMessage(message);
  }

  private lead(): void {
    this.leads = true;
    this.worker = this.started();
    this.again();
    this.say({ ready: true });
  }

  private started(): Worker {
    const worker = new Worker(this.script, { type: "module", name: this.api });
    let runs = false;
    worker.onmessage = ({ data }: MessageEvent<Answered | Unasked>) => {
      runs = true;
      if ("lost" in data) this.startOver(data.lost);
      else if ("leads" in data) this.stand(data.leads);
      else this.answered(data);
    };
    worker.onerror = () => {
      if (!runs) {
        worker.terminate(); // its script couldn't be loaded, or crashed: the next question starts another
        this.worker = null;
      }
      for (const id of [...this.unanswered]) this.answered({ id, answer: runs ? STOPPED : NOT_STARTED });
    };
    return worker;
  }

  /** Records whether this tab's worker has the store; if another tab's has it, pending questions go there. */
  private stand(leads: boolean): void {
    if (leads === this.leads) return;
    this.leads = leads;
    if (!leads) {
      this.known.clear();
      this.unanswered.clear();
      for (const waiting of this.open.values()) waiting.heard = false;
    }
    this.again();
    this.say({ ready: true });
  }

  /**
   * The worker's store is gone: starts another worker here, or in a newer tab, and hands it what this one remembered.
   */
  private startOver(kept: Remembered): void {
    this.worker?.terminate();
    this.known.clear();
    this.unanswered.clear();
    const waiting = [...this.open];
    this.worker = this.started();
    this.leads = true; // until the worker reports otherwise
    void this.ask({ putBack: kept }).then(({ kind }) => {
      const cleared = { putBack: kind === "done" };
      this.say({ cleared });
      this.lost(cleared);
    });
    for (const [id, { question, heard }] of waiting) this.askAgain(id, question, heard);
    this.say({ ready: true });
  }

  /** Has the worker answer; retries if it couldn't be started. */
  private deliver(question: Asked): void {
    if (this.known.has(question.id)) return;
    for (const oldest of this.known) if (this.known.size >= KNOWN) this.known.delete(oldest);
    this.known.add(question.id);
    this.unanswered.add(question.id);
    this.worker ??= this.started();
    this.worker.postMessage(question);
  }

  private answered(answered: Answered): void {
    this.unanswered.delete(answered.id);
    const isMine = this.settle(answered);
    const isErased = hasErased(answered.answer);
    if (!isMine || isErased) this.say({ answered });
    if (!isMine && isErased) this.erased();
  }

  private hear(message: Said): void {
    if ("asked" in message) {
      if (!this.leads) return;
      this.deliver(message.asked);
      this.say({ heard: message.asked.id });
    } else if ("heard" in message) this.heard(message.heard);
    else if ("ready" in message) this.again();
    else if ("cleared" in message) this.lost(message.cleared);
    else if (!this.settle(message.answered) && hasErased(message.answered.answer)) this.erased();
  }

  private heard(id: string): void {
    const waiting = this.open.get(id);
    if (waiting) waiting.heard = true;
  }

  /**
   * A worker has started: sends it the waiting questions. An action that an earlier worker acknowledged may already be
   * done.
   */
  private again(): void {
    for (const [id, { question, heard }] of [...this.open]) this.askAgain(id, question, heard);
  }

  private askAgain(id: string, question: Question, heard: boolean): void {
    if (heard && "form" in question && question.form !== null) this.settle({ id, answer: STOPPED });
    else this.send({ id, question });
  }

  private settle({ id, answer }: Answered): boolean {
    const waiting = this.open.get(id);
    this.open.delete(id);
    waiting?.resolve(answer);
    return waiting !== undefined;
  }
}

const STOPPED: Answer = { kind: "failed", words: "Ownfeed was closed in this tab before it answered. Reload the page." };
const NOT_STARTED: Answer = { kind: "failed", words: "Ownfeed could not start here. Reload the page." };
