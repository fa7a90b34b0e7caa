// Stores that were cleared while a device used them, and what it restores into another one.
import { Device, chosenSettings } from "../../web/device/device";
import { BudgetSpent } from "../../web/device/errors";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { DAY_MS, HOUR_MS } from "../../web/device/protocol/moments";
import { partsOf, storesOf } from "../../web/device/parts";
import { CHANNELS } from "../../web/device/privacy/accounting/limits";
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Memory } from "../../web/device/remembered";
import { Blobs } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import { NoAnswer } from "../../web/device/uplink/transport";
import { noblePrimitives } from "../../web/device/protocol/primitives";
import { SQLITE, type Wasm } from "./wasm";
import { MemoryFolder } from "./given";

interface Clock {
  ms: number;
}

/** A browser's device on an empty store, which asks whether this is the reader's first visit. */
async function newDevice(clock: Clock, wasm: Wasm) {
  const database = await openMemory(wasm(SQLITE));
  const stores = storesOf(database, await lateMemory(wasm(SQLITE)), new Blobs(new MemoryFolder()));
  stores.firstUse.ask("new");
  const now = () => clock.ms;
  const around = {
    stores,
    transport: { send: () => Promise.reject(new NoAnswer("nobody is there")) },
    graphs: new Graphs(new OnnxRuntime(new Uint8Array())),
    primitives: noblePrimitives,
    clock: now,
    noise: systemNoise,
    chance: systemChance,
    backendUrl: "http://127.0.0.1:9",
    pinnedKey: null,
  };
  const settings = { performance: performanceSettings.make({}), feed: feedSettings.make({}) };
  const parts = partsOf(around, { privacy: () => chosenSettings(stores), ...settings });
  const [device, memory] = [new Device(parts, now), new Memory(stores, now)];
  const { ledger } = parts;
  const spend = (epsilon: number): boolean => {
    const price = { parameters: {}, epsilon, delta: 0, payloadSha256: "", subject: "r" };
    try {
      ledger.spend({ channel: "reports", mechanism: "code", ...price });
      return true;
    } catch (refused) {
      if (refused instanceof BudgetSpent) return false;
      throw refused;
    }
  };
  const account = () => ({
    question: stores.firstUse.question,
    total: ledger.total("reports"),
    left: Object.fromEntries(CHANNELS.map((each) => [each, ledger.left(each)])),
    training: device.privacy.settings.training,
    counting: device.privacy.settings.counting,
  });
  return { device, memory, ledger, stores, spend, account };
}

interface Frozen {
  readonly now: number;
  /** How long the tab couldn't check its store. */
  readonly unseenMs: number;
  /** Whether the reader said that the next store was the first one. */
  readonly settled: boolean;
  /** The charges of that store, each at a different time. */
  readonly between: readonly number[];
  /** Whether that store was cleared, too, before the tab continues. */
  readonly clearedToo: boolean;
}

/** A device that spent 4 and was cleared, the next store, and the copy of the first restored twice. */
async function putBack({ now, unseenMs, settled, between, clearedToo }: Frozen, wasm: Wasm): Promise<unknown> {
  const clock = { ms: now };
  const first = await newDevice(clock, wasm);
  first.device.privacy.beginFirstUse();
  first.device.privacy.change({ training: true });
  first.spend(4);
  first.memory.storeSeen(clock.ms);
  let next = await newDevice(clock, wasm);
  const refusedWhileOpen = !next.spend(1);
  if (settled) {
    next.device.privacy.beginFirstUse();
    next.device.privacy.change({ training: false, counting: false });
  }
  for (const epsilon of between) {
    clock.ms += 1;
    next.spend(epsilon);
  }
  clock.ms = now + unseenMs;
  if (clearedToo) next = await newDevice(clock, wasm);
  first.ledger.end();
  const kept = first.memory.now();
  const refusedAfter = !first.spend(1);
  next.device.moving.putBack(kept);
  const once = next.account();
  next.device.moving.putBack(kept);
  return { refusedWhileOpen, refusedAfter, once, twice: next.account() };
}

/** A copy that can't be restored into a used store, because the clock was set back. */
async function refused({ now }: { readonly now: number }, wasm: Wasm): Promise<unknown> {
  const clock = { ms: now };
  const first = await newDevice(clock, wasm);
  first.device.privacy.beginFirstUse();
  first.spend(4);
  const kept = first.memory.now();
  clock.ms -= 2 * HOUR_MS;
  const next = await newDevice(clock, wasm);
  next.device.privacy.beginFirstUse();
  let why = "";
  try {
    next.device.moving.putBack(kept);
  } catch (broken) {
    why = (broken as Error).message;
  }
  return { why, spent: next.spend(1), ...next.account() };
}

/** The copy of a store whose reader had not answered, restored into another one. */
async function unanswered({ now }: { readonly now: number }, wasm: Wasm): Promise<unknown> {
  const clock = { ms: now };
  const [first, next] = [await newDevice(clock, wasm), await newDevice(clock, wasm)];
  next.device.moving.putBack(first.memory.now());
  const put = next.account();
  next.stores.firstUse.signFound();
  return { put, found: next.account() };
}

/** A reader who says "I was here before" and has no file, on that day and the next. */
async function beginAgain({ now }: { readonly now: number }, wasm: Wasm): Promise<unknown> {
  const clock = { ms: now };
  const { device, spend, account } = await newDevice(clock, wasm);
  device.moving.beginAgain();
  const [today, spent] = [account(), spend(1)];
  clock.ms += DAY_MS;
  return { today, spent, tomorrow: account() };
}

export const cleared = {
  cleared_put_back: putBack,
  cleared_refused: refused,
  cleared_unanswered: unanswered,
  cleared_begin_again: beginAgain,
};
