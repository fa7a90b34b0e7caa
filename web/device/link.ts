// One worker for all tabs of this browser: the tab that holds the lock runs it, the others ask through a channel. When that
// tab goes, the next one takes the lock and opens the same database.
import { type Answer, type Answered, type Asked, type Question, hasErased } from "./asking";

const NAME = "ownfeed-device";
/** Questions that are known again, where a tab asks a second time because it didn't hear that they were heard. */
const KNOWN = 500;
type Said = { asked: Asked } | { heard: string } | { answered: Answered } | { ready: true };

/**
 * Asks the worker. A deed is done once at most: one that a worker has heard is asked of no other one, but fails where that
 * worker ends before its answer.
 */
export class DeviceLink {
  private readonly channel = new BroadcastChannel(NAME);
  private readonly open = new Map<string, { question: Question; resolve: (answer: Answer) => void; heard: boolean }>();
  private leads = false;
  private worker: Worker | null = null;
  /** What this tab's worker was asked, by any tab: newest last; and what of it has no answer yet. */
  private readonly known = new Set<string>();
  private readonly unanswered = new Set<string>();

  /** script: address of the worker's bundle; erased: another tab has erased what the device knew of its reader. */
  constructor(
    private readonly script: string,
    private readonly erased: () => void,
  ) {
    this.channel.onmessage = ({ data }: MessageEvent<Said>) => this.hear(data);
  }

  /** Run the worker here, once no other tab does. What is asked before waits for one. */
  begin(): void {
    // held until this tab is closed or killed; the promise never ends
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

  private send(asked: Asked): void {
    if (!this.leads) return this.say({ asked });
    this.heard(asked.id);
    this.deliver(asked);
  }

  private say(said: Said): void {
    this.channel.postMessage(said);
  }

  private lead(): void {
    this.leads = true;
    this.worker = this.started();
    this.again();
    this.say({ ready: true });
  }

  private started(): Worker {
    const worker = new Worker(this.script, { type: "module" });
    let runs = false;
    worker.onmessage = ({ data }: MessageEvent<Answered>) => {
      runs = true;
      this.answered(data);
    };
    worker.onerror = () => {
      if (!runs) {
        worker.terminate(); // its script could not be had, or broke: the next question starts another
        this.worker = null;
      }
      for (const id of [...this.unanswered]) this.answered({ id, answer: runs ? STOPPED : NOT_STARTED });
    };
    return worker;
  }

  /** Have the worker answer; one that could not be started is tried again. */
  private deliver(asked: Asked): void {
    if (this.known.has(asked.id)) return;
    for (const oldest of this.known) if (this.known.size >= KNOWN) this.known.delete(oldest);
    this.known.add(asked.id);
    this.unanswered.add(asked.id);
    this.worker ??= this.started();
    this.worker.postMessage(asked);
  }

  private answered(answered: Answered): void {
    this.unanswered.delete(answered.id);
    const isMine = this.settle(answered);
    const isErased = hasErased(answered.answer);
    if (!isMine || isErased) this.say({ answered });
    if (!isMine && isErased) this.erased();
  }

  private hear(said: Said): void {
    if ("asked" in said) {
      if (!this.leads) return;
      this.deliver(said.asked);
      this.say({ heard: said.asked.id });
    } else if ("heard" in said) this.heard(said.heard);
    else if ("ready" in said) this.again();
    else if (!this.settle(said.answered) && hasErased(said.answered.answer)) this.erased();
  }

  private heard(id: string): void {
    const waiting = this.open.get(id);
    if (waiting) waiting.heard = true;
  }

  /** A worker has begun: what waits is asked of it. A deed that an earlier worker heard may be done already. */
  private again(): void {
    for (const [id, { question, heard }] of [...this.open]) {
      if (heard && "form" in question && question.form !== null) this.settle({ id, answer: STOPPED });
      else this.send({ id, question });
    }
  }

  private settle({ id, answer }: Answered): boolean {
    const waiting = this.open.get(id);
    this.open.delete(id);
    waiting?.resolve(answer);
    return waiting !== undefined;
  }
}

const STOPPED: Answer = { kind: "failed", words: "This tab's device was closed while it answered. Load the page again." };
const NOT_STARTED: Answer = { kind: "failed", words: "Your device could not be started here. Load the page again." };
