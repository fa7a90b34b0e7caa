// Exports taken over by the browser's device.
import { Device, chosenSettings } from "../../web/device/device";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { partsOf, storesOf } from "../../web/device/parts";
import { systemNoise } from "../../web/device/privacy/noise_sources";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs, MemoryFolder } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import { NoAnswer } from "../../web/device/uplink/transport";
import { exportAll } from "../../web/device/view_models/export";
import { noblePrimitives } from "../../web/device/wire/primitives";
import { SQLITE, type Wasm } from "./wasm";

interface Given {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly files: readonly { readonly content: string; readonly used: boolean; readonly settings: boolean }[];
}

/** After each file: what refused it, or '', and the export of a device that had nothing before the first. */
async function taken({ now, files }: Given, wasm: Wasm): Promise<unknown> {
  const [database, beside] = [await openMemory(wasm(SQLITE)), await lateMemory(wasm(SQLITE))];
  const stores = storesOf(database, beside, new Blobs(new MemoryFolder()));
  const parts = partsOf(
    {
      stores,
      transport: { send: () => Promise.reject(new NoAnswer("nobody is there")) },
      graphs: new Graphs(new Uint8Array()),
      primitives: noblePrimitives,
      clock: () => now,
      noise: systemNoise,
      chance: systemChance,
      backendUrl: "http://127.0.0.1:9",
      pinnedKey: null,
    },
    { privacy: () => chosenSettings(stores), performance: performanceSettings.make({}), feed: feedSettings.make({}) },
  );
  const device = new Device(parts, () => now);
  return files.map(({ content, ...move }) => {
    let refused = "";
    try {
      device.moving.takeOver(content, move);
    } catch (broken) {
      refused = (broken as Error).message;
    }
    return { refused, exported: exportAll(stores, "reader", now) };
  });
}

export const moving = { moving_taken: taken };
