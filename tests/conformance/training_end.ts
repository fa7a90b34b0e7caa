// Browser devices in one process, each with a store and a trainer of its own, stepped by a test; a device can be killed at
// any commit and any request, and continues from what was on its disk.
import { Ledger } from "../../web/device/privacy/accounting/ledger";
import { ceilingsOf } from "../../web/device/privacy/accounting/limits";
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { SumTransitions } from "../../web/device/privacy/secagg/transitions";
import { privacySettings } from "../../web/device/privacy/settings";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs } from "../../web/device/store/blobs";
import { ByteLog } from "../../web/device/store/byte_log";
import { Clicks } from "../../web/device/store/clicks";
import { type Database, openMemory } from "../../web/device/store/database";
import { ImpressionStore } from "../../web/device/store/impressions";
import { LedgerRepository } from "../../web/device/store/ledger_entries";
import { NewsStore } from "../../web/device/store/news";
import { Participations } from "../../web/device/store/participations";
import { InstalledReleases } from "../../web/device/store/releases";
import { ReleaseSync } from "../../web/device/sync/release_sync";
import { trainerOf } from "../../web/device/training/composition";
import { graphLoader, paramsOf } from "../../web/device/training/gradients";
import { type Outcome, outcome } from "../../web/device/training/participant";
import { pollForRounds } from "../../web/device/background";
import type { Trainer } from "../../web/device/training/trainer";
import { HttpClient } from "../../web/device/uplink/http";
import { type Arrived, type Departing, FetchTransport } from "../../web/device/uplink/transport";
import { readMessage } from "../../web/device/protocol/forms";
import { newsCard } from "../../web/device/protocol/news";
import { choosePrimitives, hex } from "../../web/device/protocol/primitives";
import { load } from "../../web/device/protocol/tensors";
import { GivenBits, MemoryFolder, unhex } from "./given";

const ENCODER = "test-encoder";
const primitives = await choosePrimitives();
const wasm: { sqlite?: Uint8Array; onnx?: Uint8Array } = {};
let graphs: Graphs | undefined;
const folder = new MemoryFolder(); // blobs are the same for every device

/** The runtimes' files; only the script that runs in Node can read them. */
export function begin(sqlite: Uint8Array, onnx: Uint8Array): void {
  [wasm.sqlite, wasm.onnx] = [sqlite, onnx];
  graphs = new Graphs(new OnnxRuntime(onnx));
}

/** The process of a device ended here. */
class Killed extends Error {}

interface Making {
  number: number;
  url: string;
  privacy: unknown;
  now: number;
  /** The key of its noise; null for the system's. */
  noise: string | null;
  /** Seconds from getting a place to sending the update; 0 without a delay. */
  sendSec?: number;
}

/** One device; `left` counts the commits and requests until it is killed. */
class BrowserRig {
  trainer!: Trainer;
  clicks!: Clicks;
  impressions!: ImpressionStore;
  news!: NewsStore;
  left = Infinity;
  sent: [string, string][] = [];
  vectors: string[] = [];
  private database!: Database;
  private now: number;

  constructor(private readonly making: Making) {
    this.now = making.now;
  }

  async start(content?: Uint8Array): Promise<void> {
    this.left = Infinity;
    this.database = await openMemory(wasm.sqlite as Uint8Array, content);
    this.mortal();
    const clock = (): number => this.now;
    const client = new HttpClient(this.making.url, new ByteLog(this.database), clock, {
      send: (request) => this.send(request),
    });
    const settings = privacySettings.read(this.making.privacy);
    const releases = new InstalledReleases(this.database, new Blobs(folder));
    this.clicks = new Clicks(this.database);
    this.impressions = new ImpressionStore(this.database);
    this.news = new NewsStore(this.database);
    const sync = new ReleaseSync(client, releases, graphs as Graphs, primitives, () => Date.now());
    this.sync = async () => {
      const another = await sync.refresh();
      await sync.complete();
      return another;
    };
    this.trainer = trainerOf({
      database: this.database,
      impressions: this.impressions,
      news: this.news,
      client,
      releases,
      ledger: new Ledger(new LedgerRepository(this.database), () => ceilingsOf(settings), clock),
      privacy: () => settings,
      graphs: graphs as Graphs,
      primitives,
      noise: this.making.noise === null ? systemNoise : new GivenBits(unhex(this.making.noise)),
      clock,
      halfLifeHours: 48,
      sendSec: this.making.sendSec ?? 0,
      chance: () => 0.5,
      paused: () => false,
      muted: () => new Set(),
      trustedKey: () => releases.pinnedKey(),
    });
  }

  sync!: () => Promise<boolean>;

  /** A step; killed before its `left`-th commit or request, it starts again from what was on the disk. */
  async step(now: number, left = Infinity): Promise<unknown> {
    [this.now, this.left] = [now, left];
    try {
      const { state, why } = await this.trainer.step();
      return { state, why, killed: false };
    } catch (killed) {
      if (!(killed instanceof Killed)) throw killed;
      const content = this.database.exported();
      this.database.close();
      await this.start(content);
      return { state: null, why: null, killed: true };
    } finally {
      this.left = Infinity;
    }
  }

  /** The charges, rounds and requests on its disk. */
  kept(): unknown {
    const rows = (sql: string): unknown => this.database.rows(sql);
    return {
      charges: rows("SELECT channel, subject, epsilon, delta, parameters, payload_sha256 FROM charge ORDER BY id"),
      uploads: rows("SELECT round, payload_sha256 FROM round_upload"),
      parts: rows("SELECT round FROM sum_part"),
      counts: rows("SELECT round, displayed, clicked FROM count_taken"),
      logged: rows("SELECT method, url, body_sha256 FROM traffic ORDER BY id"),
      rounds: new Participations(this.database).list(),
      sent: this.sent,
      vectors: this.vectors,
    };
  }

  private tick(): void {
    this.left -= 1;
    if (this.left === 0) throw new Killed();
  }

  private async send(request: Departing): Promise<Arrived> {
    this.tick();
    this.sent.push([request.method, `${this.making.url}${request.path}`]);
    const answer = await new FetchTransport(this.making.url).send(request);
    this.tick();
    return answer;
  }

  /** Kills it before and after the commit of an outermost transaction. */
  private mortal(): void {
    const transaction = this.database.transaction.bind(this.database);
    let depth = 0;
    this.database.transaction = <R>(work: () => R): R => {
      if (depth) return transaction(work);
      const result = transaction(() => {
        depth = 1;
        try {
          const made = work();
          this.tick();
          return made;
        } finally {
          depth = 0;
        }
      });
      this.tick();
      return result;
    };
  }
}

const devices = new Map<number, BrowserRig>();
let stepping: BrowserRig | undefined;

function device(number: number): BrowserRig {
  const found = devices.get(number);
  if (!found) throw new Error(`there is no device ${number}`);
  return found;
}

// What goes into a sum, in the clear; read independently of the device, as the test's oracle.
const mask = SumTransitions.prototype.mask;
SumTransitions.prototype.mask = async function (state, sharers, contribution) {
  const { vector } = contribution;
  stepping?.vectors.push(hex(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)));
  return mask.call(this, state, sharers, contribution);
};

interface Read {
  number: number;
  cards: string[];
  vectors: string;
  width: number;
  feeds: { id: string; shown: string[]; at: number }[];
  clicks: { news: string; feed: string | null; at: number }[];
  now: number;
}

export const asked = {
  device: async (making: Making) => {
    const rig = new BrowserRig(making);
    devices.set(making.number, rig);
    await rig.start();
    await rig.sync();
  },
  read: ({ number, cards, vectors, width, feeds, clicks, now }: Read) => {
    const rig = device(number);
    const data = new Float32Array(unhex(vectors).buffer);
    const read = cards.map((card) => readMessage(newsCard, card));
    rig.news.put(read, { data, rows: read.length, width }, ENCODER, now);
    for (const feed of feeds) {
      rig.impressions.serve(feed.id, feed.shown, feed.at);
      rig.impressions.view(feed.id, feed.shown, feed.at);
    }
    for (const click of clicks) rig.clicks.add(click.news, click.feed, click.at);
  },
  step: async ({ number, now, left }: { number: number; now: number; left: number | null }) => {
    stepping = device(number);
    return stepping.step(now, left ?? Infinity);
  },
  /** Resolves once the updates computed in the background are done. */
  computed: async (number: number) => {
    for (const update of device(number).trainer["due"].values()) await update["computing"];
  },
  /** The pauses of a loop whose steps have these outcomes; null where one fails. */
  pauses: async ({ ends, chances, everySec }: { ends: (Partial<Outcome> | null)[]; chances: number[]; everySec: number }) => {
    const [left, drawn, pauses] = [[...ends], [...chances], [] as number[]];
    await pollForRounds({
      wanted: () => true,
      step: async () => {
        const end = left.shift() ?? null;
        if (end === null) throw new Error("a fault");
        return outcome("idle", null, end);
      },
      everySec,
      chance: () => drawn.shift() ?? NaN,
      wait: async (seconds) => {
        pauses.push(seconds);
        return left.length > 0;
      },
    });
    return pauses;
  },
  sync: (number: number) => device(number).sync(),
  kept: (number: number) => device(number).kept(),
  gradient: async ({ graph, weights, inputs }: { graph: string; weights: string; inputs: string }) => {
    const loaded = graphLoader(graphs as Graphs)(unhex(graph), new Map(), []);
    const found = await loaded.run(paramsOf(load(unhex(weights))), paramsOf(load(unhex(inputs))));
    await loaded.release();
    return Object.fromEntries([...found].map(([name, { values }]) => [name, [...values]]));
  },
} as const;

/** Answers one question. */
export async function answer(what: string, given: unknown): Promise<unknown> {
  const known = (asked as Readonly<Record<string, (given: never) => unknown>>)[what];
  if (!known) throw new Error(`nothing is known of ${what}`);
  return (await known(given as never)) ?? null;
}
