// Exports imported by the browser's device.
import { Device, chosenSettings } from "../../web/device/device";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { partsOf, storesOf } from "../../web/device/parts";
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import { ImpressionStore } from "../../web/device/store/impressions";
import { NoAnswer } from "../../web/device/uplink/transport";
import { exportAll } from "../../web/device/view_models/export";
import { noblePrimitives } from "../../web/device/protocol/primitives";
import { SQLITE, type Wasm } from "./wasm";
import { MemoryFolder } from "./given";

/** cut: where the worker is killed: before the end of the main database's transaction, or of the searches'. stays: it
 * isn't killed there, and continues. */
interface File {
  readonly content: string;
  readonly used: boolean;
  readonly settings: boolean;
  readonly cut?: "" | "transaction" | "searches";
  readonly stays?: boolean;
}

interface Given {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly files: readonly File[];
}

/** What remains to be done after a worker is killed. */
function cutOff(): never {
  throw new Error("the worker was killed");
}

/** After each file: why it was refused, or '', and the export of a device that was empty before the first; opened again
 * where it was interrupted. */
async function taken({ now, files }: Given, wasm: Wasm): Promise<unknown> {
  const [database, beside] = [await openMemory(wasm(SQLITE)), await lateMemory(wasm(SQLITE))];
  const blobs = new Blobs(new MemoryFolder());
  const opened = () => {
    const stores = storesOf(database, beside, blobs);
    const parts = partsOf(
      {
        stores,
        transport: { send: () => Promise.reject(new NoAnswer("nobody is there")) },
        graphs: new Graphs(new OnnxRuntime(new Uint8Array())),
        primitives: noblePrimitives,
        clock: () => now,
        noise: systemNoise,
        chance: systemChance,
        backendUrl: "http://127.0.0.1:9",
        pinnedKey: null,
      },
      { privacy: () => chosenSettings(stores), performance: performanceSettings.make({}), feed: feedSettings.make({}) },
    );
    return new Device(parts, () => now);
  };
  let device = opened();
  return files.map(({ content, cut = "", stays = false, ...move }) => {
    let refused = "";
    const { impressions } = device.parts.stores;
    impressions.seen(0); // as a page does
    if (cut === "transaction") device.parts.names.name = cutOff;
    const transaction = beside.transaction;
    if (cut === "searches") beside.transaction = cutOff;
    try {
      device.moving.takeOver(content, move);
    } catch (broken) {
      refused = (broken as Error).message;
    }
    beside.transaction = transaction;
    const looks = [impressions, new ImpressionStore(database)].map((store) => [...store.seen(0)].sort());
    if (cut && !stays) device = opened();
    return { refused, exported: exportAll(device.parts.stores, "reader", now), looks };
  });
}

export const moving = { moving_taken: taken };
