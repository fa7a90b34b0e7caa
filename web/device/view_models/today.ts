// What about the reader left this device today, over all channels, for the first sentence of its pages.
import { DAY_MS, msOf } from "../protocol/moments";
import type { Ledger } from "../privacy/accounting/ledger";
import { CHANNELS } from "../privacy/accounting/limits";
import type { ReportPolicy } from "../reports/policy";
import type { DeviceStores } from "../parts";
import { UP_TO_LIMITS } from "../privacy/accounting/moved_charges";
import { TAKEN_OVER } from "../store/preferences";
import type { Moment } from "../protocol/forms";

/**
 * The preference that survives an erase: when it happened, and how often something had left that day without a charge.
 */
export const LEFT_BEFORE_ERASE = "left_before_erase";
/** States of a part in a round for which something was sent. */
const SENT: readonly string[] = ["summing", "uploaded", "applied"];

/** How often something left today without a charge, and until when, in milliseconds since 1970. */
export interface LeftSoFar {
  readonly at: number;
  readonly again: number;
  readonly counts: number;
  readonly rounds: number;
}

/** One ledger day's counts (UTC), with the templates' names; see device_app/view_models/traffic.py. */
export interface TodayView {
  readonly reports: number;
  readonly again: number;
  readonly counts: number;
  readonly rounds: number;
  readonly one_number: boolean;
  readonly spent_before: boolean;
  readonly erased_at: Moment | null;
  readonly moved: boolean;
  readonly up_to_limits: boolean;
}

export function todayView(stores: DeviceStores, policy: ReportPolicy, ledger: Ledger): TodayView {
  const now = ledger.now();
  const day = new Date(now).toISOString().slice(0, 10);
  const today = stores.ledgerEntries.days().filter((one) => one.day === day);
  const charges = (channel: string) => today.find((one) => one.channel === channel)?.charges ?? 0;
  const left = leftSoFar(stores, ledger);
  const erased = stores.preferences.get(LEFT_BEFORE_ERASE) as { at: Moment } | null;
  const movedAt = stores.preferences.get(TAKEN_OVER) as Moment | null;
  return {
    reports: charges("reports"),
    again: left.again,
    counts: charges("counts") + left.counts,
    rounds: charges("training") + left.rounds,
    one_number: policy.mode.label.inASentence,
    spent_before: CHANNELS.some((channel) => ledger.total(channel) > 0),
    erased_at: erased?.at ?? null,
    moved: movedAt !== null && new Date(msOf(movedAt)).toISOString().slice(0, 10) === day,
    up_to_limits: stores.ledgerEntries.chargedBy(UP_TO_LIMITS, Math.floor(now / DAY_MS) * DAY_MS),
  };
}

export function leftSoFar(stores: DeviceStores, ledger: Ledger): LeftSoFar {
  const now = ledger.now();
  const midnight = Math.floor(now / DAY_MS) * DAY_MS;
  const kept = stores.preferences.get(LEFT_BEFORE_ERASE) as (Omit<LeftSoFar, "at"> & { at: Moment }) | null;
  const before = kept && msOf(kept.at) >= midnight ? kept : null;
  const since = before ? msOf(before.at) : midnight;
  const charged = stores.ledgerEntries.ofSums();
  const reports = stores.byteLog.sentSince("recall", since) - stores.ledgerEntries.chargesSince("reports", since);
  const uncharged = stores.counted.list().filter((one) => one.until >= midnight && !charged.has(one.round)).length;
  const exact = stores.participations
    .list()
    .filter((one) => SENT.includes(one.state) && one.sentBytes > 0 && one.epsilon === 0 && one.task !== "count")
    .filter((one) => one.changedAt >= midnight).length;
  return {
    at: now,
    again: (before?.again ?? 0) + Math.max(0, reports),
    counts: (before?.counts ?? 0) + uncharged,
    rounds: (before?.rounds ?? 0) + exact,
  };
}
