// Feeds of the browser's device: built from a store that the Python device has written, and after a sync of its own.
import { Device } from "../../web/device/device";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { type Chance, PythonRandom } from "../../web/device/feed/chance";
import { inSlot } from "../../web/device/feed/item";
import { feedForm } from "../../web/device/feed/recent_feeds";
import { WholePool } from "../../web/device/feed/whole_pool";
import type { Pause } from "../../web/device/protocol/moments";
import { PageRenderer, startTemplates } from "../../web/device/pages/renderer";
import { Pages } from "../../web/device/pages/routes";
import { type Parts, partsOf, storesOf } from "../../web/device/parts";
import { type PrivacySettings, privacySettings } from "../../web/device/privacy/settings";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs } from "../../web/device/store/blobs";
import { type Database, lateMemory, openMemory } from "../../web/device/store/database";
import type { Naming } from "../../web/device/store/news";
import { LAST_ANSWER } from "../../web/device/store/preferences";
import { FetchTransport } from "../../web/device/uplink/transport";
import { poolCodes } from "../../web/device/protocol/broadcast";
import { choosePrimitives } from "../../web/device/protocol/primitives";
import { similarityFloor } from "../../web/device/protocol/similarity";
import { averageLinkage } from "../../web/device/reading/click_clusters";
import { distinctLabels } from "../../web/device/reading/interest_labels";
import type { NewsCard } from "../../web/device/protocol/news";
import { vectors } from "../../web/device/vectors";
import { GivenBits, MemoryFolder, unhex } from "./given";
import { MINIJINJA, ORT, SQLITE, type Wasm } from "./wasm";
import { toBase64 } from "../../web/device/protocol/forms";

interface Reader {
  /** `file:` URL of the store that the Python device has written. */
  readonly file: string;
  /** The URL of the second view's store; null if there is none. */
  readonly searches: string | null;
  readonly privacy: Record<string, unknown>;
  readonly url: string;
  readonly key: string;
  readonly seed: string;
  readonly now: number;
  readonly more: boolean;
}

/** A reader whose device starts empty. */
type Beginner = Omit<Reader, "file" | "searches">;

/** Readers whose store the Python device has written. */
const kept = new Blobs(new MemoryFolder());
let graphs: Graphs | null = null;

async function device(
  database: Database,
  given: Beginner & { searches?: string | null },
  wasm: Wasm,
  blobs = kept,
  pause?: Pause,
): Promise<Parts> {
  graphs ??= new Graphs(new OnnxRuntime(wasm(ORT)));
  const privacy = privacySettings.read(given.privacy) as PrivacySettings;
  const chance: Chance = new PythonRandom(BigInt(given.seed));
  return partsOf(
    {
      stores: storesOf(database, await lateMemory(wasm(SQLITE), given.searches ? wasm(given.searches) : undefined), blobs),
      transport: new FetchTransport(given.url),
      graphs,
      primitives: await choosePrimitives(),
      clock: () => given.now,
      noise: new GivenBits(unhex(given.key)),
      chance,
      backendUrl: given.url,
      pinnedKey: null,
      ...(pause && { pause }),
    },
    { privacy: () => privacy, performance: performanceSettings.make({}), feed: feedSettings.make({}) },
  );
}

export const feed = {
  /** Stores the graphs and weights of the readers' release, by their `file:` URLs. */
  async feed_blobs(files: readonly string[], wasm: Wasm): Promise<number> {
    for (const file of files) await kept.put(wasm(file));
    return files.length;
  },

  /** The feed of a reader whose store the Python device has written; extended at its end if requested. */
  async feed_built(given: Reader, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), wasm(given.file));
    const { serving, ledger, recallStep } = await device(database, given, wasm);
    await recallStep.step();
    const first = await serving.feed({ refresh: true });
    const built = given.more ? await serving.more(first.feed_id) : first;
    if (!built) throw new Error("the feed was not kept");
    const interests = (await serving.profile()).names;
    const spent = ledger.spentToday("reports");
    database.close();
    return { feed: feedForm.write(built), interests, spent };
  },

  /** The labels of groups of clicked articles. */
  async feed_labels(groups: readonly (readonly NewsCard[])[]): Promise<string[]> {
    return distinctLabels(groups, new Map());
  },

  /** Ids of the stories on consecutive pages, each seen completely, from a store that the Python device wrote. */
  async feed_pages({ pages, ...given }: Reader & { pages: number }, wasm: Wasm): Promise<string[][]> {
    const database = await openMemory(wasm(SQLITE), wasm(given.file));
    const { serving, stores } = await device(database, given, wasm);
    const found: string[][] = [];
    while (found.length < pages) {
      const { feed_id, items } = await serving.feed({ refresh: true });
      found.push(items.map(({ card }) => card.id));
      stores.impressions.view(feed_id, found.at(-1)!, given.now);
    }
    database.close();
    return found;
  },

  /** How many new stories the newest page offers, and which of them the next page shows and marks as new. */
  async feed_offered({ known, ...given }: Reader & { known: readonly string[] }, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), wasm(given.file));
    const parts = await device(database, given, wasm);
    const { serving, stores } = parts;
    const opened = new Device(parts, () => given.now);
    const page = serving.last()!;
    await opened.reading.prepareOffer(page);
    const untold = opened.reading.offer(page).new;
    await serving.models();
    await opened.reading.prepareOffer(page);
    const offer = opened.reading.offer(page).new;
    const again = opened.reading.offer(page, { ofThisVisit: false }).new;
    stores.impressions.view(page.feed_id, page.items.map(({ card }) => card.id), given.now);
    const next = await opened.reading.feed(true);
    const shown = next.items.map(({ card }) => card.id).filter((id) => known.includes(id));
    const { came } = opened.reading.offer(next);
    database.close();
    return { untold, again, offer, shown, came };
  },

  /** How many new stories the newest page offers, and the next page: ids in order. */
  async feed_next(given: Reader, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), wasm(given.file));
    const parts = await device(database, given, wasm);
    const { reading } = new Device(parts, () => given.now);
    const page = parts.serving.last()!;
    await parts.serving.models();
    await reading.prepareOffer(page);
    const offered = reading.offer(page).new;
    const { items } = await reading.feed(true);
    database.close();
    return { offered, page: items.map(({ card, slot, reason }) => ({ id: card.id, slot, why: reason.words })) };
  },

  /** A new page after an answer, and the first one after a restart, when no server can be reached. */
  async feed_started_again(given: Reader, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), wasm(given.file));
    const first = await device(database, given, wasm);
    await first.recallStep.step();
    await first.bodies.fetchReturned();
    const next = await device(database, { ...given, url: "http://127.0.0.1:9" }, wasm);
    const found: unknown[] = [];
    for (const { serving } of [first, next]) {
      const { mode, recalled } = await serving.feed({ refresh: true });
      found.push([mode, recalled]);
    }
    await next.serving.erasing(() => database.erase(() => undefined));
    found.push(storesOf(database, first.stores.searchDatabase, kept).preferences.get(LAST_ANSWER));
    database.close();
    return found;
  },

  /** Interests before and after a release was swapped in twice at once, and whether other models are then in use. */
  async feed_swapped(given: Reader, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), wasm(given.file));
    const { serving } = await device(database, given, wasm);
    const [before, models] = [(await serving.profile()).names, serving.loaded()];
    await Promise.all([serving.swap(), serving.swap()]);
    const swapped = serving.loaded() !== models;
    return { before, after: (await serving.profile()).names, swapped };
  },

  /** A device that starts empty: its content after two steps, and what it sent according to its log. */
  async feed_synced(given: Beginner, wasm: Wasm): Promise<unknown> {
    const [database, blobs] = [await openMemory(wasm(SQLITE)), new Blobs(new MemoryFolder())];
    const { stores, syncing, bodies, serving } = await device(database, given, wasm, blobs);
    await syncing.step();
    await syncing.takePictures();
    await bodies.fetchAll();
    const built = await serving.feed({ refresh: true });
    const [first] = built.items;
    const lead = inSlot(built, "lead").length;
    const body = first && stores.news.body(first.card.id);
    const again = await syncing.step();
    await syncing.takePictures();
    const sent = stores.byteLog.entries().rows.map(({ method, url, status, words }) => ({ method, url, status, words }));
    const same = (await serving.feed({ refresh: false })).feed_id === built.feed_id;
    return { items: built.items.length, mode: built.mode, lead, body, again, same, sent: sent.reverse() };
  },

  /**
   * The first poll of a device that starts empty, while its reader does nothing or reads in every pause; stalled: no
   * pause ends, and the reader has only what came before. What it sent, and how many stories and texts it has.
   */
  async feed_started({ reads, stalled, ...given }: Beginner & { reads: boolean; stalled: boolean }, wasm: Wasm): Promise<unknown> {
    const blobs = new Blobs(new MemoryFolder());
    let reading: Promise<void> | null = null;
    const read = async (): Promise<void> => {
      await reader.reading.feed();
      const { feed_id, items } = await reader.reading.feed(true);
      await reader.reading.open(items[0]!.card.id, feed_id);
      await reader.reading.feed();
    };
    const pause = async (): Promise<void> => {
      if (stalled) return new Promise(() => undefined);
      if (!reads || reading) return; // the pause is one of a page that is drawn
      reading = read();
      await reading;
      reading = null;
    };
    const parts = await device(await openMemory(wasm(SQLITE)), given, wasm, blobs, pause);
    const reader = new Device(parts, () => given.now);
    const whole = reader.sync();
    await reader.syncForFeed();
    if (!stalled) await whole.then(() => reader.takePictures());
    const { items } = await reader.reading.feed();
    await new Promise((begun) => setTimeout(begun)); // a request that a page begins is noted by now
    const { news, byteLog, pictures } = parts.stores;
    const texts = items.filter(({ card }) => news.body(card.id) !== null).length;
    const sent = byteLog.entries().rows.map(({ method, url }) => [method, new URL(url).pathname]);
    const cards = [...(pictures.current()?.marks.keys() ?? [])].flatMap((name) => (name.endsWith(" 0") ? [name.slice(0, -2)] : []));
    const pictured = cards.map((id) => [id, toBase64(pictures.content(id)!)]);
    return { items: items.length, texts, pictured, sent: sent.reverse(), alerts: reader.status().alerts };
  },

  /**
   * What searches and names find, in order, in a store that the Python device has written, when this is a tab's first
   * page: no model is loaded. steps: rows of the pool's index at each pause of the first search.
   */
  async feed_searched(
    { words, names, ...given }: Reader & { words: readonly (readonly [string, number])[]; names: readonly (readonly [Naming, string])[] },
    wasm: Wasm,
  ): Promise<unknown> {
    const parts = await device(await openMemory(wasm(SQLITE), wasm(given.file)), given, wasm);
    const { stores, serving } = parts;
    for (const table of ["pool_text", "pool_indexed"]) stores.database.run(`DELETE FROM ${table}`);
    const reader = new Device(parts, () => given.now);
    const steps: number[] = [];
    const pause = async () => void steps.push(stores.database.number("SELECT sum(done) FROM pool_indexed"));
    const wholePool = new WholePool(stores, serving, reader.lists, () => given.now, pause);
    const ids = (cards: readonly NewsCard[]) => cards.map((card) => card.id);
    const found = async () => {
      const all = [];
      for (const [text, page] of words) {
        const { cards, near, total, upto } = await wholePool.search(text, page);
        all.push({ cards: ids(cards), near: ids(near), total, upto, here: stores.news.missing(ids([...cards, ...near])) });
      }
      return all;
    };
    const first = await found();
    const relevances = (await wholePool.hits(words[0]?.[0] ?? "")).map((hit) => [hit.id, hit.relevance, hit.publishedUs]);
    const named = names.map(([kind, name]) => wholePool.named(kind, name));
    const again = await found();
    return { size: wholePool.size(), loaded: serving.loaded() !== null, first, again, named, relevances, steps };
  },

  /**
   * The size of the pool's copy, what a search finds, and the pages of a topic: while the copy is of another encoder than
   * the release in use, when it is of the same, and again of another. No model is loaded.
   */
  async feed_unread({ words, topic, ...given }: Reader & { words: string; topic: string }, wasm: Wasm): Promise<unknown> {
    startTemplates(wasm(MINIJINJA));
    const { stores, ...parts } = await device(await openMemory(wasm(SQLITE), wasm(given.file)), given, wasm);
    const reader = new Device({ stores, ...parts }, () => given.now);
    const pages = new Pages(new PageRenderer(reader, () => given.now));
    const { listing } = stores.pool.current()!;
    const found = [];
    for (const encoder of ["f".repeat(64), listing.encoder, "f".repeat(64)]) {
      const other = { ...listing, encoder };
      stores.pool.use(other, new TextEncoder().encode(poolCodes.write(other)), given.now);
      const { total } = await reader.wholePool.search(words, 1);
      const statuses = [];
      for (const page of [1, 2]) {
        const address = `/topic/${encodeURIComponent(topic)}?page=${page}`;
        const answer = await pages.answer({ address, form: null, followed: false, quietly: false });
        statuses.push(answer.kind === "page" ? answer.status : answer.kind);
      }
      found.push({ size: reader.wholePool.size(), total, statuses });
    }
    return found;
  },

  /**
   * What happens to a running search, to its page, and to a topic's list while everything is erased; held: results in
   * memory.
   */
  async feed_erased({ words, topic, ...given }: Reader & { words: string; topic: string }, wasm: Wasm): Promise<unknown> {
    startTemplates(wasm(MINIJINJA));
    const parts = await device(await openMemory(wasm(SQLITE), wasm(given.file)), given, wasm);
    const { stores, serving } = parts;
    const again = () => ["pool_text", "pool_indexed"].forEach((table) => stores.database.run(`DELETE FROM ${table}`));
    again();
    const reader = new Device(parts, () => given.now);
    const pages = new Pages(new PageRenderer(reader, () => given.now));
    const ask = (address: string, form: [string, string][] | null = null) =>
      pages.answer({ address, form, followed: false, quietly: false });
    const address = `/search?q=${words}`;
    const before = await ask(address);
    again(); // so that the next one takes its steps, too
    const wholePool = new WholePool(stores, serving, reader.lists, () => given.now);
    const found = wholePool.search(words, 1).catch((why: Error) => why.message);
    const page = ask(address);
    const listed = wholePool.named("topic", topic);
    const erased = await ask("/privacy/erase", [["confirm", "erase"]]);
    const { ids: still } = reader.lists.holdIds("following", listed);
    const held = Reflect.get(reader.lists, "found") as Map<string, unknown>;
    const answers = { before: before.kind, found: await found, page: await page, erased };
    const lists = [still.length > 0, stores.preferences.get("list/following")];
    const indexed = stores.database.number("SELECT count(*) FROM pool_text");
    return { ...answers, lists, held: held.size, news: stores.news.count(), indexed };
  },

  /** Milliseconds of device work from a click to the next feed, measured several times. */
  async feed_timed(given: Reader & { times: number }, wasm: Wasm): Promise<unknown> {
    const { serving, stores, recallStep } = await device(await openMemory(wasm(SQLITE), wasm(given.file)), given, wasm);
    const found: Record<string, number>[] = [];
    await recallStep.step();
    let built = await serving.feed({ refresh: true });
    for (let time = 0; time < given.times; time++) {
      const { card } = built.items[time % built.items.length] as (typeof built.items)[number];
      const started = performance.now();
      stores.clicks.add(card.id, built.feed_id, given.now);
      serving.changed();
      built = await serving.feed({ refresh: true });
      found.push({ ...built.device_ms, all: performance.now() - started });
    }
    return found;
  },

  /** What `random.Random(seed)` draws. */
  feed_chance(seeds: readonly (readonly ["int" | "text", string])[]): unknown {
    return seeds.map(([kind, seed]) => {
      const random = new PythonRandom(kind === "int" ? BigInt(seed) : seed);
      return { bits: Array.from({ length: 400 }, () => String(random.bits64())), random: random.random() };
    });
  },

  /** The similarity floor of rows, and their clusters. */
  feed_vectors(given: { rows: number[]; width: number; distance: number; limit: number }): unknown {
    const all = vectors(Float32Array.from(given.rows), given.width);
    return { floor: similarityFloor(all), labels: averageLinkage(all, given.distance, given.limit) };
  },
};
