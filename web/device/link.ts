// One worker for all tabs of this browser: the tab that holds the lock runs it, the others ask through a channel. When that
// tab goes, the next one takes the lock and opens the same database.
import type { Answer, Answered, Asked, Question } from "./asking";

const NAME = "ownfeed-device";
type Said = { asked: Asked } | { answered: Answered } | { ready: true };

export class DeviceLink {
  private readonly channel = new BroadcastChannel(NAME);
  private readonly open = new Map<string, { question: Question; resolve: (answer: Answer) => void; heard: boolean }>();
  private worker: Worker | null = null;
  /** Whether a tab has said that it runs the worker, so that what is asked is heard. */
  private led = false;

  /** script: address of the worker's bundle. */
  constructor(private readonly script: string) {
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
    if (this.worker) this.worker.postMessage(asked);
    else this.channel.postMessage({ asked } satisfies Said);
    const waiting = this.open.get(asked.id);
    if (waiting) waiting.heard = this.worker !== null || this.led;
  }

  private lead(): void {
    const worker = new Worker(this.script, { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<Answered>) => {
      if (!this.settle(data)) this.channel.postMessage({ answered: data } satisfies Said);
    };
    worker.onerror = () => {
      for (const id of [...this.open.keys()]) this.settle({ id, answer: STOPPED });
    };
    this.worker = worker;
    this.again();
    this.channel.postMessage({ ready: true } satisfies Said);
  }

  private hear(said: Said): void {
    if ("asked" in said) this.worker?.postMessage(said.asked);
    else if ("answered" in said) {
      this.led = true;
      this.settle(said.answered);
    }
    else {
      this.led = true;
      this.again();
    }
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
