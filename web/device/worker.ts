// The device of this browser: one worker owns its database and its models, and answers the pages of all tabs.
import sqliteFile from "@sqlite.org/sqlite-wasm/sqlite3.wasm";
import * as templatesModule from "minijinja-js/dist/web/minijinja_js_bg.wasm";
import type { Answer, Asked, Answered, Question } from "./asking";
import { Device, chosenSettings } from "./device";
import { systemChance } from "./feed/chance";
import { type PerformanceSettings, feedSettings, performanceSettings } from "./feed_settings";
import { systemClock } from "./moments";
import { FrontPages, NotOverwritten } from "./pages/front_page";
import { Pictures } from "./pages/pictures";
import { PageRenderer, startTemplates } from "./pages/renderer";
import { Pages } from "./pages/routes";
import { type Parts, partsOf, storesOf } from "./parts";
import { systemNoise } from "./privacy/noise_sources";
import { RuntimeThread } from "./ranking/runtime_thread";
import runtimeScript from "./ranking/runtime_worker.ts?address";
import { Graphs } from "./ranking/session";
import { Blobs, PrivateFolder } from "./store/blobs";
import { FrontPageFile } from "./store/front_page";
import firstDatabase from "./store/first_database.ts?made";
import { hasPrivateFile, openPrivateFiles } from "./store/database";
import { ownFile } from "./uplink/own_files";
import { buildVerdicts } from "./sync/builds";
import { pollForRounds } from "./training/polling";
import { FetchTransport } from "./uplink/transport";
import { type Primitives, choosePrimitives } from "./wire/primitives";

/** The package declares what is in the file; the bundler gives its address. */
const { default: templatesFile } = templatesModule as unknown as { default: string };
const DATABASE = "device.sqlite";
const SEARCHES = "searches.sqlite";
const FOLDER = "ownfeed-files";
/** The builds of this app that the server has served, signed. */
const BUILDS = "/reader/builds.json";

/** What answers, once everything is open. */
interface Opened {
  readonly device: Device;
  readonly primitives: Primitives;
  readonly performance: PerformanceSettings;
  readonly pages: Pages;
  readonly pictures: Pictures;
  readonly front: FrontPages;
}

async function opened(): Promise<Opened> {
  const file = (address: string) => ownFile(address, import.meta.url);
  const runtime = new RuntimeThread(() => new Worker(new URL(runtimeScript, import.meta.url), { type: "module" }));
  const graphs = new Graphs(runtime);
  // a first visit needs the runtime as soon as its release is here, and it is most of what has to be fetched
  const isNew = !(await hasPrivateFile());
  if (isNew) void graphs.prepare();
  const [sqlite, templates, first, folder, frontPage, primitives] = await Promise.all([
    file(sqliteFile),
    file(templatesFile),
    isNew ? file(firstDatabase) : null,
    PrivateFolder.open(FOLDER),
    navigator.storage.getDirectory().then((root) => FrontPageFile.open(root)),
    choosePrimitives(),
  ]);
  startTemplates(templates);
  const { database, searches } = await openPrivateFiles(sqlite, DATABASE, SEARCHES, first);
  const stores = storesOf(database, searches, new Blobs(folder));
  const performance = performanceSettings.make({});
  const around = {
    stores,
    transport: new FetchTransport(),
    graphs,
    primitives,
    clock: systemClock,
    noise: systemNoise,
    chance: systemChance,
    backendUrl: self.location.origin,
    pinnedKey: null,
    pause: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
  };
  const parts: Parts = partsOf(around, { privacy: () => chosenSettings(stores), performance, feed: feedSettings.make({}) });
  const device = new Device(parts, systemClock);
  const [renderer, pictures] = [new PageRenderer(device, systemClock), new Pictures(device)];
  const front = new FrontPages(renderer, pictures, frontPage, new URL(import.meta.url).pathname);
  return { device, primitives, performance, pages: new Pages(renderer), pictures, front };
}

/**
 * Load the models and keep up; ends with the first look at what is new. What the page asks first waits for neither: a feed
 * that is kept is drawn without them.
 */
async function keepUp({ device, performance, front }: Opened): Promise<void> {
  await Promise.all(underWay);
  await device.parts.serving.models().catch(() => undefined); // none is here before the first sync
  const looked = attend(device, front, performance.sync_poll_sec);
  void pollForRounds({
    wanted: () => device.settings.training || device.settings.counting,
    step: async () => {
      const outcome = await device.trainStep();
      if (outcome) front.keepSoon();
      return outcome;
    },
    everySec: performance.training_poll_sec,
    chance: () => Number(systemChance.bits64() >> 11n) / 2 ** 53,
    wait: async (seconds) => {
      await new Promise((resolve) => setTimeout(resolve, 1_000 * seconds));
      return true; // until the browser ends this worker, which costs nothing: see training/secagg_client.ts
    },
  });
  await looked;
}

/** Look at what is new every so often, and fetch the texts of what came. Ends with the first look. */
async function attend(device: Device, front: FrontPages, pollSec: number): Promise<void> {
  const look = async () => {
    try {
      await device.sync();
      await device.fetchTexts();
      await device.catchUpIndex();
    } catch (fault) {
      console.error("syncing failed; it goes on:", fault);
    }
    front.keepSoon();
    setTimeout(look, 1_000 * pollSec);
    try {
      await device.takePictures();
    } catch (fault) {
      console.error("no pictures were kept; it goes on:", fault);
    }
    front.keepSoon();
  };
  await look();
}

const opening = opened();
/** Answers that are being made. */
const underWay = new Set<Promise<unknown>>();
const quiet = opening.then(keepUp).catch((failed: unknown) => console.error(failed)); // what failed to open is in every answer

async function answer(question: Question): Promise<Answer> {
  try {
    const { device, primitives, pages, pictures, front } = await opening;
    if ("pictures" in question) return { kind: "pictures", drawn: question.pictures.map((address) => pictures.at(address)) };
    if ("persisted" in question) {
      pages.persisted = question.persisted;
      return { kind: "done" };
    }
    if ("quiet" in question) {
      await quiet;
      return { kind: "done" };
    }
    if ("builds" in question) {
      const list = () => ownFile(BUILDS, self.location.origin);
      return { kind: "builds", verdicts: await buildVerdicts(question.builds, device, primitives, list) };
    }
    return await front.around(question, () => pages.answer(question));
  } catch (failed) {
    console.error(failed);
    if (failed instanceof NotOverwritten) return { kind: "failed", words: failed.message };
    return { kind: "failed", words: `This browser can't keep a device for you: ${String(failed)}` };
  }
}

self.onmessage = async ({ data }: MessageEvent<Asked>) => {
  const making = answer(data.question);
  if (!("quiet" in data.question)) underWay.add(making); // which waits for the others
  const made = await making;
  underWay.delete(making);
  self.postMessage({ id: data.id, answer: made } satisfies Answered);
};

