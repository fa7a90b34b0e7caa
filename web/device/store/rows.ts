// Rows as the tables' classes read and write them: moments, pages of long lists.

/** Of the store: microseconds since 1970, as the Python device keeps them. Elsewhere a moment is milliseconds since 1970. */
export function toUs(ms: number): number {
  return Math.round(ms * 1000);
}

export function fromUs(us: number): number {
  return us / 1000;
}

export const PAGE_SIZE = 50;

/** Rows of page `number` (the first is 1) and how many rows all pages hold together. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly number: number;
  readonly total: number;
  /** How many pages there are; an empty list has one. */
  readonly pages: number;
}

export function pageOf<T>(rows: readonly T[], number: number, total: number): Page<T> {
  return { rows, number, total, pages: Math.max(1, Math.ceil(total / PAGE_SIZE)) };
}

/** Rows before page `number`; throws RangeError below page 1. */
export function offset(number: number): number {
  if (number < 1) throw new RangeError(`page ${number}: pages count from 1`);
  return (number - 1) * PAGE_SIZE;
}
