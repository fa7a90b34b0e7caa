// The settings that can change privacy: what may leave the device, how, and at what cost. Names, defaults and limits
// are those of device_app/privacy/settings.py, which describes each.
import { integer, literal, nullable, optional, real, record, truth, type ValueOf } from "../protocol/forms";

const anyPrice = real({ min: 0 });
const positive = real({ above: 0 });
const days = integer({ min: 1, max: 100 });

export const modeName = literal("interest", "auto", "broadcast", "none", "code", "topics", "subset", "basis_l1", "basis_laplace");

/** Only these settings can change what leaves the device; null: no ceiling. */
export const privacySettings = record({
  mode: optional(modeName, "interest"),
  epsilon_per_report: optional(positive, 4),
  bytes_per_list: optional(integer({ min: 100_000 }), 2_500_000),
  epsilon_per_day_reports: optional(anyPrice, 8),
  epsilon_lifetime_reports: optional(nullable(anyPrice), 40),
  epsilon_per_day_training: optional(anyPrice, 0),
  epsilon_lifetime_training: optional(nullable(anyPrice), null),
  clicks_before_report: optional(integer({ min: 1, max: 50 }), 3),
  clicks_per_report: optional(integer({ min: 1, max: 50 }), 20),
  report_window_hours: optional(real({ above: 0, max: 24 * 30 }), 24),
  codebooks_per_day: optional(days, 2),
  searches_in_reports: optional(truth, true),
  training: optional(truth, false),
  counting: optional(truth, true),
  epsilon_per_day_counts: optional(anyPrice, 6),
  epsilon_lifetime_counts: optional(nullable(anyPrice), null),
  weakest_scale_to_clip: optional(positive, 0.1),
  weakest_view_sigma: optional(positive, 1),
  secure_sum: optional(literal("never", "noisy", "exact"), "noisy"),
  secure_sum_mode: optional(literal("semi_honest", "active"), "active"),
  smallest_sum: optional(integer({ min: 2, max: 10_000 }), 10),
  epsilon_per_sum: optional(positive, 8),
  epsilon_per_sum_alone: optional(positive, 24),
  epsilon_per_click_alone: optional(positive, 8),
  epsilon_per_day_alone: optional(anyPrice, 48),
  epsilon_lifetime_alone: optional(nullable(anyPrice), null),
  delta_per_sum: optional(real({ above: 0, max: 1e-3 }), 1e-6),
});
export type PrivacySettings = ValueOf<typeof privacySettings>;
