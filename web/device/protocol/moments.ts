// Moments: on the wire ISO 8601 to the microsecond, in the program milliseconds since 1970.
import type { Moment } from "./forms";

/** The device's clock: milliseconds since 1970. */
export type Clock = () => number;

/** Resolves after this many milliseconds. */
export type Pause = (ms: number) => Promise<void>;

/** Yields to the event loop, so that a page can be answered. */
export const breath = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

export const systemClock: Clock = () => Date.now();
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

const FRACTION = /\.(\d{1,6})/;

/** Milliseconds since 1970, with microseconds as fraction. */
export function msOf(value: Moment): number {
  const whole = value.replace(FRACTION, "");
  const digits = FRACTION.exec(value)?.[1] ?? "";
  return Date.parse(whole) + (digits ? Number(digits.padEnd(6, "0")) / 1_000 : 0);
}

/** A moment as both sides write it, in UTC, to the microsecond. */
export function momentOf(ms: number): Moment {
  const us = Math.round(ms * 1_000);
  const rest = ((us % 1_000_000) + 1_000_000) % 1_000_000;
  const whole = new Date((us - rest) / 1_000).toISOString().slice(0, 19);
  return `${whole}${rest ? `.${String(rest).padStart(6, "0")}` : ""}Z` as Moment;
}
