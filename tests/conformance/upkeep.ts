// How the browser's device copes with failing parts: fakes fail, the device's own modules respond.
import { Device, chosenSettings } from "../../web/device/device";
import { BackendUnreachable, DeviceError, ReleaseRefused } from "../../web/device/errors";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { partsOf, storesOf } from "../../web/device/parts";
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { type Ordered, RuntimeThread } from "../../web/device/ranking/runtime_thread";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import type { StanceKind } from "../../web/device/store/opinions";
import { ReleaseSync } from "../../web/device/sync/release_sync";
import { Syncing } from "../../web/device/syncing";
import { NoAnswer } from "../../web/device/uplink/transport";
import { contentHash, noblePrimitives } from "../../web/device/protocol/primitives";
import { SQLITE, type Wasm } from "./wasm";
import { MemoryFolder } from "./given";

const NOW = 1_795_685_400_000;
const FAULTS = {
  "": null,
  refused: new ReleaseRefused("r1", "a part of it can't be had"),
  unreachable: new BackendUnreachable("http://127.0.0.1:9", "nobody is there"),
} as const;
type Fault = keyof typeof FAULTS;

/** The outcome, or 'waits' if it never settles; all fakes answer before the next task begins. */
async function ended(work: Promise<unknown>): Promise<string> {
  const waits = new Promise<string>((done) => setTimeout(done, 0, "waits"));
  return Promise.race([work.then(() => "done", (failed: Error) => failed.message), waits]);
}

/** A worker that fails at its first requests, or answers them. */
class FakeWorker {
  onmessage: ((event: unknown) => void) | null = null;
  onerror: ((event: unknown) => void) | null = null;
  onmessageerror: ((event: unknown) => void) | null = null;
  terminated = false;

  constructor(private readonly fails: "" | "error" | "message error") {}

  postMessage({ id, order }: Ordered): void {
    queueMicrotask(() => {
      if (this.fails === "error") this.onerror?.({ message: "" });
      else if (this.fails) this.onmessageerror?.({});
      else this.onmessage?.({ data: { id, made: order.kind === "load" ? { loaded: 1, inputs: [], outputs: [] } : {} } });
    });
  }

  terminate(): void {
    this.terminated = true;
  }
}

async function runtime(fails: "error" | "message error"): Promise<unknown> {
  const made: FakeWorker[] = [];
  const thread = new RuntimeThread(() => {
    made.push(new FakeWorker(made.length ? "" : fails));
    return made.at(-1) as unknown as Worker;
  });
  const graph = new Uint8Array(1);
  const told = [await ended(thread.prepare()), await ended(thread.load(graph)), await ended(thread.prepare())];
  made[0]!.onerror?.({ message: "told late" });
  told.push(await ended(thread.load(graph)));
  made.at(-1)!.onerror?.({ message: "one that has answered" });
  told.push(await ended(thread.load(graph).then((loaded) => loaded.run({}))));
  return { reported: told, terminated: made.map((one) => one.terminated) };
}

/** ofPictures: how requests for pictures fail instead, or that they never get an answer. */
async function restOfSync([fault, ofPictures = ""]: readonly [Fault, (Fault | "waits")?]): Promise<unknown> {
  const asked: string[] = [];
  const noting = (name: string) => async () => void asked.push(name);
  const pulls = {
    takeover: {
      step: noting("release"),
      rest: async () => {
        asked.push("rest");
        if (FAULTS[fault]) throw FAULTS[fault];
      },
    },
    defaultList: { refresh: async () => null },
    popularity: { refresh: noting("popularity") },
    pool: { refresh: noting("pool") },
    pictures: {
      refresh: async () => {
        asked.push("pictures");
        if (ofPictures === "waits") await new Promise(() => undefined);
        else if (FAULTS[ofPictures]) throw FAULTS[ofPictures];
      },
    },
  };
  let pruned = 0;
  const stores = {
    news: { withoutBody: () => [], prune: () => pruned++ },
    defaultList: { current: () => null },
    searchIndex: { tidy: () => undefined },
    impressions: { prune: () => undefined },
    readMarks: { prune: () => undefined },
  };
  const serving = {
    models: async () => ({ manifest: {}, release: "r1", encoder: "e", dimensions: 1 }),
    context: { defaultList: { candidates: () => ({ cards: [], ids: [], vectors: null }) } },
    last: () => null,
    reached: () => undefined,
    unreachable: () => undefined,
  };
  const bodies = { want: () => undefined, lostSome: () => false, fetchAll: noting("texts") };
  const [clock, settings] = [() => NOW, performanceSettings.make({})];
  const syncing = new Syncing(pulls as never, stores as never, bodies as never, serving as never, settings, clock);
  const said = await ended(syncing.step());
  const pictured = await ended(syncing.takePictures());
  const rounds = await ended(syncing.forRounds());
  return { pictured, rounds, said, online: syncing.online, lastAt: syncing.lastAt, silentSince: syncing.silentSince, pruned, asked };
}

async function sumFirst(fault: Fault, wasm: Wasm): Promise<unknown> {
  const stores = storesOf(await openMemory(wasm(SQLITE)), await lateMemory(wasm(SQLITE)), new Blobs(new MemoryFolder()));
  const around = {
    stores,
    transport: { send: () => Promise.reject(new NoAnswer("nobody is there")) },
    graphs: new Graphs(new OnnxRuntime(new Uint8Array())),
    primitives: noblePrimitives,
    clock: () => NOW,
    noise: systemNoise,
    chance: systemChance,
    backendUrl: "http://127.0.0.1:9",
    pinnedKey: null,
  };
  const settings = { privacy: () => chosenSettings(stores), performance: performanceSettings.make({}), feed: feedSettings.make({}) };
  const parts = partsOf(around, settings);
  const went: string[] = [];
  parts.syncing.forRounds = async () => {
    went.push("rest");
    if (FAULTS[fault]) throw FAULTS[fault];
  };
  const inside = parts.trainer as unknown as Record<string, () => unknown>;
  for (const name of ["giveUpCutOff", "followUp", "goOnSumming", "releaseOrNull"]) {
    const does = inside[name]!;
    inside[name] = function () {
      went.push(name);
      return does.call(parts.trainer);
    };
  }
  const device = new Device(parts, () => NOW);
  const outcome = await device.trainStep();
  return { went, state: outcome?.state ?? null, alerts: device.status().alerts.map(({ loop }) => loop) };
}

/** A release of one model that rounds use, with these bytes as its weights. */
async function releaseOf(name: string, weights: string) {
  const content = new TextEncoder().encode(weights);
  const ref = { sha256: await contentHash(content), size_bytes: content.length };
  const model = { graphs: new Map(), weights: ref, groups: null };
  const manifest = { release: name, default_ranker: "r", models: new Map([["rounds", model]]), recall: { codebooks: [] } };
  return { manifest, signed: { manifest: name }, content };
}

async function releaseRest(): Promise<unknown> {
  const blobs = new Blobs(new MemoryFolder());
  const [older, newer] = [await releaseOf("r1", "no tensors"), await releaseOf("r2", "none either")];
  let current = older;
  const waiting: (() => void)[] = [];
  const asked: string[] = [];
  let held = true;
  const client = {
    getAll: async (paths: readonly string[]) => {
      const { manifest, content } = current;
      asked.push(...paths.map(() => manifest.release));
      if (held) await new Promise<void>((go) => waiting.push(go));
      return paths.map(() => ({ body: content }));
    },
  };
  const store = { current: () => current, blobs };
  const sync = new ReleaseSync(client as never, store as never, {} as never, noblePrimitives, () => NOW);
  const words = (work: Promise<void>) => work.then(() => "", (refused: DeviceError) => refused.message.split(":")[0]);
  const first = words(sync.complete());
  const same = words(sync.complete());
  await new Promise((begun) => setTimeout(begun));
  [current, held] = [newer, false];
  const second = words(sync.complete());
  await new Promise((begun) => setTimeout(begun));
  for (const go of waiting) go();
  const said = [await first, await same, await second, await words(sync.complete()), await words(sync.complete())];
  return { said, asked };
}

interface Topic {
  readonly stance?: readonly ["topic", string, "follow" | "block" | null];
  readonly keep?: readonly string[];
}

/** Names of the topics whose meaning is still stored after each step. */
async function topics(given: readonly Topic[], wasm: Wasm): Promise<unknown> {
  const stores = storesOf(await openMemory(wasm(SQLITE)), await lateMemory(wasm(SQLITE)), new Blobs(new MemoryFolder()));
  const vector = new Float32Array(16).fill(0.25);
  return given.map(({ stance, keep = [] }) => {
    if (stance) stores.stances.set(stance[0] as StanceKind, stance[1], stance[2], NOW);
    for (const name of keep) stores.searches.keepMeaning({ kind: "topic", name, encoder: "e", vector, madeAt: NOW });
    return stores.searches.meanings("e").map(({ name }) => name);
  });
}

export const upkeep = {
  upkeep_runtime: runtime,
  upkeep_rest_of_sync: restOfSync,
  upkeep_sum_first: sumFirst,
  upkeep_release_rest: releaseRest,
  upkeep_topics: topics,
};
