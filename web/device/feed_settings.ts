// The weights of local ranking and how a page is divided: names, defaults and limits of
// device_app/feed_settings.py, which describes each; and how much work is done how often (device_app/settings.py).
import { integer, nullable, optional, real, record, text, type ValueOf } from "./protocol/forms";
import { CANDIDATES_LIMIT } from "./protocol/recall";

const weight = real({ min: 0 });
const share = real({ min: 0, max: 1 });

/** Used on the device only. */
export const feedSettings = record({
  ranker: optional(nullable(text()), null),
  half_life_hours: optional(real({ above: 0 }), 48),
  recency_weight: optional(weight, 0.5),
  popularity_weight: optional(weight, 3),
  editorial_weight: optional(weight, 0.25),
  follow_weight: optional(weight, 0.8),
  reaction_weight: optional(weight, 0.8),
  rare_weight: optional(weight, 1),
  reaction_reach: optional(integer({ min: 1, max: 100 }), 3),
  chosen_section_weight: optional(weight, 1),
  blend_reads: optional(integer({ min: 1, max: 50 }), 20),
  chosen_share: optional(share, 0.25),
  reading_share: optional(share, 0.4),
  reads_for_share: optional(integer({ min: 1, max: 50 }), 5),
  section_share: optional(real({ above: 0, max: 1 }), 0.2),
  seen_penalty: optional(weight, 1),
  page_hours: optional(real({ above: 0, max: 168 }), 6),
  variety: optional(share, 0.2),
  topic_cap: optional(integer({ min: 1 }), 6),
  publisher_cap: optional(integer({ min: 1 }), 10),
  fresh_slots: optional(integer({ min: 0, max: 10 }), 3),
  fresh_hours: optional(real({ above: 0 }), 6),
  explore_slots: optional(integer({ min: 0, max: 10 }), 2),
  developing_stories: optional(integer({ min: 0, max: 5 }), 2),
});
export type FeedSettings = ValueOf<typeof feedSettings>;

/** How much work is done and how often; doesn't affect what is sent about the reader. */
export const performanceSettings = record({
  threads: optional(integer({ min: 1, max: 64 }), 1),
  feed_size: optional(integer({ min: 6, max: 100 }), 30),
  recall_limit: optional(integer({ min: 50, max: CANDIDATES_LIMIT }), 400),
  recall_poll_sec: optional(real({ above: 0 }), 900),
  pool_limit: optional(integer({ min: 0 }), 50_000),
  default_list_limit: optional(integer({ min: 50, max: CANDIDATES_LIMIT }), 600),
  sync_poll_sec: optional(real({ above: 0 }), 60),
  training_poll_sec: optional(real({ above: 0 }), 15),
  training_send_sec: optional(real({ min: 0 }), 4),
  request_timeout_sec: optional(real({ above: 0 }), 10),
  seen_days: optional(real({ above: 0 }), 14),
  news_days: optional(real({ above: 0 }), 21),
});
export type PerformanceSettings = ValueOf<typeof performanceSettings>;
