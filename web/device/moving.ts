// Takes over what another device of the same reader has exported: what was read, said and saved, and what it cost. The
// rules are those of device_app/moving.py.
import { ExportRefused } from "./errors";
import { momentOf } from "./moments";
import { CHOSEN_SECTIONS } from "./feed/preference_reader";
import { type DeviceStores, type Parts, TRAINING_PAUSED } from "./parts";
import { type MovedCharge, chargesSince, keepCharge, paidSince, takeCharges } from "./privacy/moved_charges";
import { type PrivacySettings, privacySettings } from "./privacy/settings";
import { type Exported, readExport, touchedBy } from "./store/exported";
import { TAKEN_OVER } from "./store/preferences";
import { SAVED_LIMIT } from "./store/searches";
import { vectors } from "./vectors";

const OPPOSITE: Readonly<Record<string, string>> = { like: "less", less: "like" };

/** used: the other device may have gone on since; settings: its switches and sections hold here from now on. */
export interface Move {
  readonly used: boolean;
  readonly settings: boolean;
}

export class Moving {
  /** choose: changes switches. */
  constructor(
    private readonly parts: Parts,
    private readonly choose: (changes: Partial<PrivacySettings>) => void,
  ) {}

  /**
   * Put what the other device knew beside what this one knows: all of it, or nothing. Of two words on one thing the later
   * one stands. A device that is killed while its searches are written writes them when it opens again. Throws
   * ExportRefused, naming the field and its limit.
   *
   * No display or click until now enters a count any more, and no round that was opened before is joined. What was deleted
   * here and not there comes back; nothing of the log of requests is taken.
   */
  takeOver(content: string, { used, settings }: Move): void {
    const { stores, ledger, names, serving } = this.parts;
    const now = ledger.now();
    const exported = readExport(content, now);
    const theirs = privacySettings.make(exported.choices.privacy);
    stores.movedSearches.finish(); // of a move before, which couldn't
    stores.database.transaction(() => {
      if (settings) this.chooseAs(exported);
      const since = used ? spentSince(exported, [theirs, ledger.settings], now, stores) : [];
      takeCharges(stores.database, exported.tables.charge);
      for (const charge of since) keepCharge(stores.database, charge);
      keepSpent(exported, stores);
      stores.counted.passOver(now);
      stores.preferences.set(TAKEN_OVER, momentOf(now));
      keepReading(exported, stores, now);
      putSearches(exported, stores);
      for (const { news, name, muted } of exported.choices.interests) {
        if (name) names.name(news, name);
        if (muted) names.mute(news, true);
      }
    });
    stores.database.forgetAll(); // what was kept in memory is of this device alone
    try {
      stores.movedSearches.finish();
    } finally {
      serving.changed();
    }
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
  settings: readonly [PrivacySettings, PrivacySettings],
  now: number,
  { database }: DeviceStores,
): MovedCharge[] {
  const at = exported.exported_at;
  try {
    return chargesSince(exported.tables.charge, settings, at, now, paidSince(database, at));
  } catch (refused) {
    throw refused instanceof RangeError ? new ExportRefused(refused.message) : refused;
  }
}

/** What goes with the charges: reports drawn once, codebooks begun, uploads and gradients given. */
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
  for (const { news_id, kind, at } of [...tables.reaction].sort((one, other) => one.at - other.at)) {
    const opposite = OPPOSITE[kind] ?? null;
    const later = "SELECT count(*) FROM reaction WHERE news_id = ? AND kind = ? AND at > ?";
    if (database.number(later, [news_id, opposite, at])) continue;
    database.run("DELETE FROM reaction WHERE news_id = ? AND kind = ?", [news_id, opposite]);
    database.run("INSERT INTO reaction (news_id, kind, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [news_id, kind, at]);
  }
  // one by one: those of another width say nothing under the release in use, which the store knows
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
