// Feeds on disk: saved completely before they are shown, and read back unchanged until the reader asks for another. The
// JSON is the Python device's, so that either device reads the other's.
import { BackendUnreachable, type DeviceError } from "../errors";
import { type Clock, momentOf, msOf } from "../protocol/moments";
import type { DeviceStores } from "../parts";
import type { StoredFeed } from "../store/feeds";
import { WireError, integer, list, literal, moment, nullable, optional, readMessage, real, realText, record, text, truth, type Form } from "../protocol/forms";
import { newsCard } from "../protocol/news";
import type { Stopwatch } from "../protocol/server_timing";
import type { Candidates } from "./candidates";
import type { Feed, FeedItem, Reason } from "./item";
import { NOTICES } from "./candidate_search";

const stages: Form<Readonly<Record<string, number>>> = {
  read(value) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new WireError("must be an object");
    if (Object.values(value).some((each) => typeof each !== "number")) throw new WireError("must be numbers by name");
    return value as Record<string, number>;
  },
  write: (value) => `{${Object.entries(value).map(([name, ms]) => `${JSON.stringify(name)}:${realText(ms)}`).join(",")}}`,
};

const reasonForm = record({
  kind: literal("interest", "following", "chosen", "liked", "recent", "explore", "developing", "popular", "rare", "editors"),
  words: text(),
  interest: optional(nullable(text()), null),
  clicks: optional(list(newsCard), []),
});

/** A feed as stored. */
export const feedForm = record({
  feed_id: text(),
  made_at: moment,
  release: nullable(text()),
  items: list(
    record({
      card: newsCard,
      position: integer(),
      slot: literal("lead", "for_you", "fresh", "explore", "developing", "following", "more"),
      reason: reasonForm,
      score: real(),
    }),
  ),
  mode: literal("personal", "cold", "front", "offline"),
  notice: optional(nullable(text()), null),
  device_ms: optional(stages, {}),
  server_ms: optional(stages, {}),
  recalled: optional(integer(), 0),
  fresh: optional(integer(), 0),
  fresh_hours: optional(real(), 0),
  complete: optional(truth, false),
  left_out: optional(integer(), 0),
});

/** The last hundred feeds of this device. */
export class RecentFeeds {
  constructor(
    private readonly stores: DeviceStores,
    private readonly clock: Clock,
  ) {}

  /**
   * Stores the shown articles, records them as served and saves the feed, in one transaction; returns the feed. shown:
   * the feed's cards with vectors, in order; popularity [n]: what was known of them.
   */
  save(feed: Feed, shown: Candidates, popularity: Float64Array, watch: Stopwatch): Feed {
    const { database, feeds, impressions, news, timings } = this.stores;
    const at = msOf(feed.made_at);
    watch.stage("store", () =>
      database.quickTransaction(() => {
        news.put(shown.cards, shown.vectors, shown.encoder, at);
        impressions.serve(feed.feed_id, shown.ids, at, [...popularity]);
        feeds.save(keptOf(feed));
      }),
    );
    timings.record("feed", watch.stagesMs, new Map(Object.entries(feed.server_ms)), at);
    const whole = { ...feed, device_ms: Object.fromEntries(watch.stagesMs) };
    // Only now is the time for storing known; after a reload the page must show the same numbers.
    feeds.rewrite(keptOf(whole));
    return whole;
  }

  /** Saves a feed with items added at its end, like `save`; does nothing if the feed is no longer kept. */
  grow(feed: Feed, added: Candidates, popularity: Float64Array, at: number): Feed {
    const { database, feeds, impressions, news } = this.stores;
    if (!feeds.get(feed.feed_id)) return feed;
    database.quickTransaction(() => {
      news.put(added.cards, added.vectors, added.encoder, at);
      impressions.serve(feed.feed_id, added.ids, at, [...popularity], feed.items.length - added.length);
      feeds.rewrite(keptOf(feed));
    });
    return feed;
  }

  /** The newest kept feed, or null. */
  last(): Feed | null {
    return read(this.stores.feeds.last());
  }

  /** The kept feed of this id, or null. */
  feed(feedId: string): Feed | null {
    return read(this.stores.feeds.get(feedId));
  }

  /**
   * Removes deleted clicks from the reasons of kept feeds; the stories keep their places. Call it within the reader's
   * deletion, so that older feeds no longer contain what was deleted.
   */
  forgetClicks(newsIds: Iterable<string>): void {
    const deletedIds = new Set(newsIds);
    const { database, feeds } = this.stores;
    database.transaction(() => {
      for (const kept of feeds.naming(deletedIds)) {
        const feed = read(kept);
        if (!feed) feeds.drop(kept.feedId);
        else feeds.rewrite(keptOf({ ...feed, items: feed.items.map((item) => without(item, deletedIds)) }));
      }
    });
  }

  /** The last feed unchanged but marked 'offline'; an empty one if there never was any. */
  offline(trouble: DeviceError): Feed {
    const last = this.last();
    const problem = trouble instanceof BackendUnreachable ? NOTICES.say("unreachable") : trouble.message;
    if (!last) return emptyFeed(this.clock(), NOTICES.say("first_offline", { trouble: problem }));
    const madeAt = new Date(msOf(last.made_at));
    const day = `${madeAt.getDate()} ${MONTHS[madeAt.getMonth()]}`;
    const time = [madeAt.getHours(), madeAt.getMinutes()].map((part) => String(part).padStart(2, "0")).join(":");
    const notice = NOTICES.say("last_feed", { trouble: problem, made: `${day}, ${time}` });
    return { ...last, mode: "offline", notice };
  }
}

const MONTHS = (
  "January February March April May June July August September October November December"
).split(" ");

function emptyFeed(now: number, notice: string): Feed {
  const none = { items: [], device_ms: {}, server_ms: {}, recalled: 0, left_out: 0, fresh: 0, fresh_hours: 0, complete: false };
  return { ...none, feed_id: "", made_at: momentOf(now), release: null, mode: "offline", notice };
}

function keptOf(feed: Feed): StoredFeed {
  return { feedId: feed.feed_id, madeAt: msOf(feed.made_at), content: feedForm.write(feed) };
}

function without(item: FeedItem, deletedIds: ReadonlySet<string>): FeedItem {
  if (!item.reason.clicks.some((card) => deletedIds.has(card.id))) return item;
  const reason: Reason = { kind: "editors", words: NOTICES.say("deleted"), interest: null, clicks: [] };
  return { ...item, reason };
}

/** The feed; null if none is kept or it can't be read, in which case another is made. */
function read(kept: StoredFeed | null): Feed | null {
  try {
    return kept && readMessage(feedForm, kept.content);
  } catch (broken) {
    if (!(broken instanceof WireError)) throw broken;
    console.warn(`The kept feed ${kept?.feedId} can't be read and counts as not kept.`);
    return null;
  }
}
