// The pages of the browser's device on a store that the Python device wrote.
import { Device, chosenSettings } from "../../web/device/device";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import type { Drawn } from "../../web/device/pages/art";
import { FrontPages } from "../../web/device/pages/front_page";
import { Pictures } from "../../web/device/pages/art";
import { PageRenderer, startTemplates } from "../../web/device/pages/renderer";
import { Pages } from "../../web/device/pages/routes";
import { HOUR_MS } from "../../web/device/protocol/moments";
import { partsOf, storesOf } from "../../web/device/parts";
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import type { FrontPageFile } from "../../web/device/store/front_page";
import { NoAnswer } from "../../web/device/uplink/transport";
import { noblePrimitives } from "../../web/device/protocol/primitives";
import { MemoryFolder, unbase64 } from "./given";
import { MINIJINJA, SQLITE, type Wasm } from "./wasm";

interface Given {
  readonly file: string;
  /** The second view's store, if there is one. */
  readonly searches?: string;
  /** The drawn pictures by name, as the build's file has them. */
  readonly art?: Drawn;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly asked: readonly { readonly address: string; readonly form: readonly [string, string][] | null }[];
}

/** A device on copies of its files, and the renderer of its pages. */
async function opened(file: Uint8Array, searches: Uint8Array | undefined, now: number, wasm: Wasm, art: Drawn = {}) {
  startTemplates(wasm(MINIJINJA));
  const database = await openMemory(wasm(SQLITE), file);
  const beside = await lateMemory(wasm(SQLITE), searches);
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
  const renderer = new PageRenderer(device, clock);
  const drawn = new TextEncoder().encode(JSON.stringify(art)).buffer as ArrayBuffer;
  const pictures = new Pictures(device, () => Promise.resolve(drawn));
  await pictures.ready;
  return { database, beside, renderer, pages: new Pages(renderer), pictures };
}

/** Answers of the pages in order; each sees the changes of those before it. */
async function answers({ file, searches, now, asked }: Given, wasm: Wasm): Promise<unknown> {
  const { pages } = await opened(unbase64(file), searches === undefined ? undefined : unbase64(searches), now, wasm);
  const found = [];
  for (const { address, form } of asked) {
    const answer = await pages.answer({ address, form, followed: true, quietly: false });
    found.push(answer.kind === "file" ? { ...answer, content: JSON.parse(new TextDecoder().decode(answer.content)) } : answer);
  }
  return found;
}

/**
 * After these actions: the stored front page, and the one that a newly opened device makes, with the pictures that its
 * page requests; and what is stored pageHours later. Each action is done alone, on the given store.
 */
async function keptFronts({ file, now, asked, pageHours, art }: Given & { pageHours: number }, wasm: Wasm): Promise<unknown> {
  const nowhere = {} as FrontPageFile;
  const front = ({ renderer, pictures }: Awaited<ReturnType<typeof opened>>) =>
    new FrontPages(renderer, pictures, nowhere, "/worker.js").drawn();
  const found = [];
  for (const { address, form } of asked) {
    const before = await opened(unbase64(file), undefined, now, wasm, art);
    await before.pages.answer({ address, form, followed: true, quietly: true });
    const kept = front(before);
    const [copy, beside] = [before.database.exported(), before.beside.known()?.exported()];
    const after = await opened(copy, beside, now, wasm, art);
    const made = await after.pages.answer({ address: "/", form: null, followed: false, quietly: false });
    const drawn = kept && Object.fromEntries(Object.keys(kept.pictures).map((each) => [each, after.pictures.at(each)]));
    const later = front(await opened(copy, beside, now + pageHours * HOUR_MS, wasm, art));
    found.push({ kept, made, drawn, later });
  }
  return found;
}

export const pages = { pages_answers: answers, pages_kept_fronts: keptFronts };
