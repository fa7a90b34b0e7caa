// The pages of the browser's device over a store that the Python device wrote.
import { Device, chosenSettings } from "../../web/device/device";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { PageRenderer, startTemplates } from "../../web/device/pages/renderer";
import { Pages } from "../../web/device/pages/routes";
import { partsOf, storesOf } from "../../web/device/parts";
import { systemNoise } from "../../web/device/privacy/noise_sources";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs, MemoryFolder } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import { NoAnswer } from "../../web/device/uplink/transport";
import { noblePrimitives } from "../../web/device/wire/primitives";
import { unbase64 } from "./given";
import { MINIJINJA, SQLITE, type Wasm } from "./wasm";

interface Given {
  readonly file: string;
  /** The second view's store, where there is one. */
  readonly searches?: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly asked: readonly { readonly address: string; readonly form: readonly [string, string][] | null }[];
}

/** Answers of the pages one after the other; what one changes, the next finds. */
async function answers({ file, searches, now, asked }: Given, wasm: Wasm): Promise<unknown> {
  startTemplates(wasm(MINIJINJA));
  const database = await openMemory(wasm(SQLITE), unbase64(file));
  const beside = await lateMemory(wasm(SQLITE), searches === undefined ? undefined : unbase64(searches));
  const clock = () => now;
  const stores = storesOf(database, beside, new Blobs(new MemoryFolder()));
  const parts = partsOf(
    {
      stores,
      transport: { send: () => Promise.reject(new NoAnswer("nobody is there")) },
      graphs: new Graphs(new OnnxRuntime(new Uint8Array())),
      primitives: noblePrimitives,
      clock,
      noise: systemNoise,
      chance: systemChance,
      backendUrl: "http://127.0.0.1:9",
      pinnedKey: null,
    },
    { privacy: () => chosenSettings(stores), performance: performanceSettings.make({}), feed: feedSettings.make({}) },
  );
  const device = new Device(parts, clock);
  const pages = new Pages(new PageRenderer(device, clock));
  const found = [];
  for (const { address, form } of asked) {
    const answer = await pages.answer({ address, form, followed: true, quietly: false });
    found.push(answer.kind === "file" ? { ...answer, content: JSON.parse(new TextDecoder().decode(answer.content)) } : answer);
  }
  return found;
}

export const pages = { pages_answers: answers };
