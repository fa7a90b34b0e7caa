// Imports what another device of the same reader exported: reading, reactions, saved data and spent budget. The rules
// are those of device_app/moving.py.
import { fromUs } from "./store/database";
import { TooManyRules } from "./store/mute_rules";
import { ExportRefused } from "./errors";
import { momentOf, msOf } from "./protocol/moments";
import { CHOSEN_SECTIONS } from "./feed/preference_reader";
import { type DeviceStores, type Parts, TRAINING_PAUSED } from "./parts";
import { type Ceilings, ceilingsOf } from "./privacy/accounting/limits";
import { type MovedCharge, chargesSince, heldCharges, keepCharge, paidSince, takeCharges } from "./privacy/accounting/moved_charges";
import { type PrivacySettings, privacySettings } from "./privacy/settings";
import { type Exported, readExport, touchedBy } from "./store/exported";
import type { Remembered } from "./remembered";
import { PRIVACY_CHANGES, TAKEN_OVER } from "./store/preferences";
import { SAVED_LIMIT } from "./store/searches";
import { vectors } from "./vectors";

const OPPOSITE: Readonly<Record<string, string>> = { like: "less", less: "like" };

/**
 * used: whether the other device may have been used since the export. settings: whether to adopt its switches and
 * sections. own: the file is what this device remembered of its own cleared store.
 */
export interface Move {
  readonly used: boolean;
  readonly settings: boolean;
  readonly own?: boolean;
}

/**
 * If the old store was last seen intact longer ago than this, another store may have existed in between: a frozen tab
 * can't tell. A new store charges nothing within this time, since the reader has to answer first and reports wait for a
 * random time.
 */
const UNSEEN_MS = 30_000;

export class Moving {
  /** choose: changes switches. */
  constructor(
    private readonly parts: Parts,
    private readonly choose: (changes: Partial<PrivacySettings>) => void,
  ) {}

  /**
   * Merges the other device's data into this one's, completely or not at all. If both have a value for the same thing,
   * the later one wins. If the device is killed while searches are written, it finishes on the next start. Throws
   * ExportRefused, naming the field and its limit.
   *
   * Earlier displays and clicks enter no further count, and no round opened earlier is joined. What was deleted here
   * but not there comes back; the request log isn't imported.
   *
   * If the reader hasn't yet answered whether there was earlier use, this settles it: the spending in the file counts,
   * plus all that may have been spent since, regardless of `used`.
   */
  takeOver(content: string, { used, settings, own = false }: Move): void {
    const { stores, ledger, names, serving } = this.parts;
    const now = ledger.now();
    const exported = readExport(content, now);
    const theirs = privacySettings.make(exported.choices.privacy);
    stores.movedSearches.finish(); // left over from an earlier import that couldn't
    stores.database.transaction(() => {
      if (settings) this.chooseAs(exported);
      const both = [ceilingsOf(theirs), ledger.ceilings];
      const since = (used || stores.firstUse.isOpen) && !own ? spentSince(exported, both, now, stores) : [];
      takeCharges(stores.database, exported.tables.charge);
      if (own && Math.abs(now - msOf(exported.exported_at)) > UNSEEN_MS)
        since.push(...chargesSince(heldCharges(stores.database), both, exported.exported_at, now));
      for (const charge of since) keepCharge(stores.database, charge);
      keepSpent(exported, stores);
      stores.counted.passOver(now);
      if (!own) {
        stores.preferences.set(TAKEN_OVER, momentOf(now));
        stores.firstUse.settle();
      }
      keepReading(exported, stores, now);
      putSearches(exported, stores);
      for (const { news, name, muted } of exported.choices.interests) {
        if (name) names.name(news, name);
        if (muted) names.mute(news, true);
      }
    });
    stores.database.forgetAll(); // the cache holds only this device's data
    try {
      stores.movedSearches.finish();
    } finally {
      serving.changed();
    }
  }

  /**
   * Restores what was remembered of the previous store. Its switches apply unless some were set here since. If it can't
   * be restored, nothing is charged until the reader has answered whether there was earlier use.
   *
   * Formal guarantees: afterwards the ledger has every charge that either store had. If the copy dates from a time
   * after which another store may have charged something, the rest of each budget since then counts as spent.
   */
  putBack(kept: Remembered): void {
    const { firstUse, preferences } = this.parts.stores;
    const untouched = !Object.keys((preferences.get(PRIVACY_CHANGES) as object | null) ?? {}).length;
    try {
      this.takeOver(kept.export, { used: false, settings: untouched, own: true });
    } catch (refused) {
      firstUse.ask("lost");
      throw refused;
    }
    if (kept.settled) firstUse.settle();
  }

  /**
   * The reader was here before and has no file: today's budget counts as spent, and this device starts over afterwards.
   */
  beginAgain(): void {
    const { stores, ledger } = this.parts;
    const now = ledger.now();
    stores.database.transaction(() => {
      const at = momentOf(now);
      for (const charge of chargesSince([], [ledger.ceilings], at, now)) keepCharge(stores.database, charge);
      stores.counted.passOver(now);
      stores.firstUse.settle();
    });
    this.parts.serving.changed();
  }

  private chooseAs({ choices }: Exported): void {
    const { preferences, pictures } = this.parts.stores;
    this.choose(choices.privacy);
    if (choices.chosen_sections) preferences.set(CHOSEN_SECTIONS, choices.chosen_sections);
    if (choices.training_paused !== null) preferences.set(TRAINING_PAUSED, choices.training_paused);
    if (choices.pictures_hidden !== null) pictures.show(!choices.pictures_hidden);
  }
}

function spentSince(
  exported: Exported,
  limits: readonly Ceilings[],
  now: number,
  { database }: DeviceStores,
): MovedCharge[] {
  const at = exported.exported_at;
  try {
    return chargesSince(exported.tables.charge, limits, at, now, paidSince(database, at));
  } catch (refused) {
    throw refused instanceof RangeError ? new ExportRefused(refused.message) : refused;
  }
}

/** Restores what belongs to the charges: memoised reports, codebooks in use, uploads and gradients sent. */
function keepSpent({ tables }: Exported, { database }: DeviceStores): void {
  const put = (table: string, columns: string, values: (string | number)[]) =>
    database.run(`INSERT INTO ${table} (${columns}) VALUES (${values.map(() => "?").join(", ")}) ON CONFLICT DO NOTHING`, values);
  for (const { mechanism, book, value, report, drawn_at } of tables.drawn_report) {
    const drawn = JSON.stringify(Object.fromEntries(report));
    put("drawn_report", "mechanism, book, value, report, drawn_at", [mechanism, book, value, drawn, drawn_at]);
  }
  for (const { meaning, first_at } of tables.report_meaning) put("report_meaning", "meaning, first_at", [meaning, first_at]);
  for (const { round, payload_sha256, bound_at } of tables.round_upload)
    put("round_upload", "round, payload_sha256, bound_at", [round, payload_sha256, bound_at]);
  for (const { round, view, clip, sigma, at } of tables.view_round)
    put("view_round", "round, view, clip, sigma, at", [round, view, clip, sigma, at]);
}

function keepReading(exported: Exported, stores: DeviceStores, now: number): void {
  const { tables } = exported;
  const { database, news } = stores;
  const touched = touchedBy(exported);
  const [missing, lacking] = [new Set(news.missing([...touched])), new Set(news.withoutBody([...touched]))];
  news.putCards(tables.news.filter((row) => missing.has(row.id)).map((row) => row.card), now);
  news.putBodies(new Map(tables.body.filter((row) => lacking.has(row.news_id)).map((row) => [row.news_id, row.body])));
  for (const { news_id, feed_id, at } of tables.click)
    database.run("INSERT INTO click (news_id, feed_id, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [news_id, feed_id, at]);
  for (const { feed_id, news_id, position, at, popularity, viewed_at } of tables.impression)
    database.run(
      `INSERT INTO impression (feed_id, news_id, position, at, popularity, viewed_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
      [feed_id, news_id, position, at, popularity, viewed_at],
    );
  stores.readMarks.takeOver(tables.read_story);
  for (const { field, kind, pattern, at } of tables.mute_rule) {
    try {
      stores.muteRules.put(field, kind, pattern, fromUs(at));
    } catch (refused) {
      if (!(refused instanceof TooManyRules)) throw refused;
      throw new ExportRefused(`tables.mute_rule: ${refused.message}`);
    }
  }
  for (const { news_id, kind, at } of [...tables.reaction].sort((one, other) => one.at - other.at)) {
    const opposite = OPPOSITE[kind] ?? null;
    const later = "SELECT count(*) FROM reaction WHERE news_id = ? AND kind = ? AND at > ?";
    if (database.number(later, [news_id, opposite, at])) continue;
    database.run("DELETE FROM reaction WHERE news_id = ? AND kind = ?", [news_id, opposite]);
    database.run("INSERT INTO reaction (news_id, kind, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [news_id, kind, at]);
  }
  // one by one: vectors of another width mean nothing under the current release, which the store checks
  for (const { news_id, encoder, float32 } of tables.vector) {
    const row = new Float32Array(float32.buffer);
    if (touched.has(news_id)) news.putVectors([news_id], vectors(row, row.length), encoder, { ofClicked: true });
  }
}

function putSearches({ views: { searches } }: Exported, { searches: saved, movedSearches }: DeviceStores): void {
  const { search } = searches;
  const both = new Set([...search, ...saved.saved()].map((one) => one.words)).size;
  if (search.length && both > SAVED_LIMIT)
    throw new ExportRefused(
      `views.searches.search: ${SAVED_LIMIT} searches can be saved, and with those here there would be ${both}: delete some first`,
    );
  movedSearches.put(searches);
}
