// The device of this browser: one worker owns its database and models, and answers the pages of all tabs.
import sqliteFile from "@sqlite.org/sqlite-wasm/sqlite3.wasm";
import * as templatesModule from "minijinja-js/dist/web/minijinja_js_bg.wasm";
import type { Answer, Answered, Asked, Question, Unasked } from "./link";
import { pollForRounds, polls, recalls } from "./background";
import { chosenSettings, Device } from "./device";
import { systemChance, uniform } from "./feed/chance";
import { feedSettings, performanceSettings, type PerformanceSettings } from "./feed_settings";
import { systemClock } from "./protocol/moments";
import { FrontPages, NotOverwritten } from "./pages/front_page";
import { Pictures } from "./pages/art";
import { PageRenderer, startTemplates } from "./pages/renderer";
import { Pages } from "./pages/routes";
import { partsOf, storesOf, type Parts } from "./parts";
import { systemNoise } from "./privacy/exact_samplers";
import { RuntimeThread } from "./ranking/runtime_thread";
import runtimeScript from "./ranking/runtime_worker.ts?address";
import { Graphs } from "./ranking/session";
import { Blobs, PrivateFolder } from "./store/blobs";
import { FrontPageFile } from "./store/front_page";
import firstDatabase from "./store/first_database.ts?made";
import { openPrivateFiles } from "./store/database";
import { hasPrivateFile, HeldFiles } from "./store/held_file";
import { FetchTransport, ownFile } from "./uplink/transport";
import { Memory } from "./remembered";
import { buildVerdicts } from "./sync/release_blobs";
import { choosePrimitives, type Primitives } from "./protocol/primitives";

/** The package declares the file's contents; the bundler gives its address. */
const { default: templatesFile } = templatesModule as unknown as { default: string };
const DATABASE = "device.sqlite";
const SEARCHES = "searches.sqlite";
const FOLDER = "ownfeed-files";
const STORE = "ownfeed-store";
/** How often to check, besides on each answer, whether the browser still has the store. */
const STORE_CHECK_MS = 5_000;
/** Forms that are sent repeatedly and delete nothing of what was read. */
const DELETES_NOTHING = /^\/(?:seen|feed\/refresh|feed\/more|list\/refresh)$/;
/** Signed list of this app's builds that the server has served. */
const BUILDS = "/reader/builds.json";

/** The parts that answer requests, once everything is open. */
interface Opened {
  readonly device: Device;
  readonly primitives: Primitives;
  readonly performance: PerformanceSettings;
  readonly pages: Pages;
  readonly pictures: Pictures;
  readonly front: FrontPages;
  readonly files: HeldFiles;
  readonly memory: Memory;
}

let leads = false;
/** Resolves once it is known whether another worker has the store. */
let known: Promise<void> = Promise.resolve();
/**
 * Resolves once this worker alone has the store. A browser lock covers only the storage that it was requested in: tabs
 * from before the site's data was cleared don't see locks of later tabs, so that the tab's own lock isn't sufficient.
 */
const leading = new Promise<void>((begin) => {
  const held = () => {
    leads = true;
    say({ leads });
    begin();
    return new Promise<never>(() => {});
  };
  known = new Promise((resolve) => {
    void navigator.locks.request(STORE, { ifAvailable: true }, (lock) => {
      resolve();
      if (lock) return held();
      say({ leads });
      void navigator.locks.request(STORE, held);
      return undefined;
    });
  });
});

function say(unasked: Unasked): void {
  self.postMessage(unasked);
}

async function opened(): Promise<Opened> {
  await leading;
  const file = (address: string) => ownFile(address, import.meta.url);
  const runtime = new RuntimeThread(() => new Worker(new URL(runtimeScript, import.meta.url), { type: "module" }));
  const graphs = new Graphs(runtime);
  // a first visit needs the runtime as soon as its release is here, and it is the largest download
  const isNew = !(await hasPrivateFile());
  if (isNew) void graphs.prepare();
  const first = isNew ? file(firstDatabase) : null;
  const [sqlite, templates, folder, frontPage, primitives] = await Promise.all([
    file(sqliteFile),
    file(templatesFile),
    PrivateFolder.open(FOLDER),
    navigator.storage.getDirectory().then((root) => FrontPageFile.open(root)),
    choosePrimitives(),
  ]);
  startTemplates(templates);
  const { database, searches } = await openPrivateFiles(sqlite, DATABASE, SEARCHES, () => first ?? file(firstDatabase));
  const files = await HeldFiles.here();
  const stores = storesOf(database, searches, new Blobs(folder));
  const performance = performanceSettings.make({});
  const around = {
    stores,
    transport: new FetchTransport(self.name),
    graphs,
    primitives,
    clock: systemClock,
    noise: systemNoise,
    chance: systemChance,
    backendUrl: self.name || self.location.origin, // its page names another one if that page has an origin of its own
    pinnedKey: null,
    pause: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
    pagesFirst,
  };
  const parts: Parts = partsOf(around, { privacy: () => chosenSettings(stores), performance, feed: feedSettings.make({}) });
  const device = new Device(parts, systemClock);
  const [renderer, pictures] = [new PageRenderer(device, systemClock), new Pictures(device, file)];
  const front = new FrontPages(renderer, pictures, frontPage, new URL(import.meta.url).pathname);
  const memory = new Memory(stores, systemClock);
  return { device, primitives, performance, pages: new Pages(renderer), pictures, front, files, memory };
}

let lost = false;

/**
 * Whether the browser has cleared the store under this worker. The page then gets the remembered data, once; nothing is
 * charged here after that, as the page's copy wouldn't have it.
 */
async function isLost({ device, files, memory }: Opened): Promise<boolean> {
  if (lost) return true;
  const askedMs = systemClock();
  const areGone = await files.areGone();
  if (!areGone) memory.storeSeen(askedMs);
  else if (!lost) {
    lost = true;
    device.parts.ledger.end();
    say({ lost: memory.now() });
  }
  return lost;
}

/**
 * Syncs, requests candidates and polls for rounds at drawn times; resolves after the first poll. Pages' requests don't
 * affect when anything is sent.
 */
async function keepUp({ device, performance, front }: Opened): Promise<void> {
  const { syncing, serving } = device.parts;
  void serving.models().catch(() => undefined); // there is none before the first sync
  const times = {
    chance: () => uniform(systemChance),
    wait: async (seconds: number) => {
      await new Promise((resolve) => setTimeout(resolve, 1_000 * seconds));
      return true; // until the browser ends this worker, which loses nothing: see training/secagg_client.ts
    },
  };
  const asking = {
    hasList: () => syncing.hasList(),
    first: () => keptUp(device, front, () => device.firstSync()),
    poll: () => keptUp(device, front, () => device.sync()),
    pollSec: () => syncing.pauseSec,
    synced: () => syncing.lastAt !== null,
    recall: async () => {
      try {
        return await device.recallStep();
      } catch (fault) {
        console.error("requesting candidates failed; trying again later:", fault);
        return null;
      }
    },
    recallSec: performance.recall_poll_sec,
  };
  const { begun } = polls(asking, times);
  void recalls(asking, times);
  void pollForRounds({
    wanted: () => device.privacy.settings.training || device.privacy.settings.counting,
    step: async () => {
      const outcome = await device.trainStep();
      if (outcome) front.keepSoon();
      return outcome;
    },
    everySec: performance.training_poll_sec,
    ...times,
  });
  await begun;
}

/** Polls once for changes, with the texts and pictures of what came. */
async function keptUp(device: Device, front: FrontPages, sync: () => Promise<void>): Promise<void> {
  try {
    await sync();
    await device.fetchTexts();
    await device.catchUpIndex();
  } catch (fault) {
    console.error("syncing failed; trying again later:", fault);
  }
  front.keepSoon();
  try {
    await device.takePictures();
  } catch (fault) {
    console.error("downloading pictures failed; trying again later:", fault);
  }
  front.keepSoon();
}

const opening = opened();
// every answer reports what failed to open
const quiet = opening.then(keepUp).catch((failed: unknown) => console.error(failed));

/** Answers in progress. */
const underWay = new Set<Promise<unknown>>();

/** Resolves when no answer is in progress. */
async function pagesFirst(): Promise<void> {
  while (underWay.size) await Promise.all(underWay);
}

async function answer(question: Question): Promise<Answer> {
  try {
    const { device, primitives, pages, pictures, front, memory } = await opening;
    if ("pictures" in question) {
      await pictures.ready;
      return { kind: "pictures", drawn: question.pictures.map((address) => pictures.at(address)) };
    }
    if ("persisted" in question) {
      pages.persisted = question.persisted;
      return { kind: "done" };
    }
    if ("usedBefore" in question) {
      device.parts.stores.firstUse.signFound();
      return { kind: "done" };
    }
    if ("putBack" in question) {
      await memory.around(() => device.moving.putBack(question.putBack), { deletes: false });
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
    const answered = () => front.around(question, () => pages.answer(question));
    if (question.form === null && !question.followed) return await answered();
    return await memory.around(answered, { deletes: question.form !== null && !DELETES_NOTHING.test(question.address) });
  } catch (failed) {
    console.error(failed);
    if (failed instanceof NotOverwritten) return { kind: "failed", words: failed.message };
    return { kind: "failed", words: `Ownfeed can't store your data in this browser: ${String(failed)}` };
  }
}

setInterval(() => void opening.then(isLost, () => undefined), STORE_CHECK_MS);

self.onmessage = async ({ data }: MessageEvent<Asked>) => {
  if (!leads) await known;
  if (!leads) return; // another worker has the store, and answers instead of this one
  const making = answer(data.question);
  if (!("quiet" in data.question)) underWay.add(making); // except those that wait for background requests
  const response = await making;
  underWay.delete(making);
  if (await opening.then(isLost, () => false)) return; // made from a store that is gone
  self.postMessage({ id: data.id, answer: response } satisfies Answered);
};
