// Formats numbers for people, by the rules of protocol/formatting.py and Python's formatting.

/**
 * Python's `g`: this many significant digits, no trailing zeros, an exponent if it is below -4 or at least `digits`.
 */
export function brief(value: number, digits = 6): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa = "0", power = "0"] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) return trimmed(value.toFixed(Math.max(0, digits - 1 - exponent)));
  return `${trimmed(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** A number with thousands separators and this many decimals. */
export function grouped(value: number, digits = 0): string {
  const [whole = "", rest] = fixed(value, digits).split(".");
  const parted = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? parted : `${parted}.${rest}`;
}

/** '1 click', '3 clicks', '10,000 clicks'. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

function trimmed(digits: string): string {
  return digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
}

/** Python's `f`: this many decimals; ties to even. */
export function fixed(value: number, digits: number): string {
  const [whole = "", rest = ""] = value.toFixed(Math.min(100, digits + 60)).split(".");
  if (!/^50*$/.test(rest.slice(digits))) return value.toFixed(digits);
  const kept = digits ? `${whole}.${rest.slice(0, digits)}` : whole;
  return Number(kept.at(-1)) % 2 === 0 ? kept : (Number(kept) + Math.sign(value) * 10 ** -digits).toFixed(digits);
}

const MINUTE_SEC = 60;
const HOUR_SEC = 3_600;
const DAY_SEC = 86_400;
const WORDS_PER_MINUTE = 220;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;

/** 'just now', '14 min', '3 h', 'yesterday', '4 days', then the date (UTC); both in milliseconds since 1970. */
export function age(thenMs: number, nowMs: number): string {
  const seconds = (nowMs - thenMs) / 1_000;
  if (seconds < 1.5 * MINUTE_SEC) return "just now";
  if (seconds < HOUR_SEC) return `${fixed(seconds / MINUTE_SEC, 0)} min`;
  if (seconds < DAY_SEC) return `${Math.floor(seconds / HOUR_SEC)} h`;
  const days = Math.floor(seconds / DAY_SEC);
  if (days === 1) return "yesterday";
  if (days < 14) return `${days} days`;
  const then = new Date(thenMs);
  return `${then.getUTCDate()} ${MONTHS[then.getUTCMonth()]} ${then.getUTCFullYear()}`;
}

/** Bytes in decimal units: '0 B', '812 B', '1.5 kB', '2.3 MB'. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${fixed(bytes, 0)} B`;
  for (const [unit, factor] of [["kB", 1e3], ["MB", 1e6], ["GB", 1e9]] as const) {
    if (bytes < factor * 999.95) return `${fixed(bytes / factor, 1)} ${unit}`;
  }
  return `${fixed(bytes / 1e12, 1)} TB`;
}

/** '0.42 ms', '9.8 ms', '120 ms', '1.30 s'; an en dash if nothing was measured. */
export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "\u2013";
  if (ms < 1) return `${fixed(ms, 2)} ms`;
  if (ms < 10) return `${fixed(ms, 1)} ms`;
  return ms < 1_000 ? `${fixed(ms, 0)} ms` : `${fixed(ms / 1_000, 2)} s`;
}

/** A number without needless decimals: '4', '0.333', '12,312', '1.4 million', '1,000 million'. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "without bound";
  if (Math.abs(value) >= 999_999.5) {
    const millions = value / 1e6;
    return `${Math.abs(millions) >= 99.95 ? grouped(millions) : brief(millions, 3)} million`;
  }
  return Math.abs(value) >= 99.95 ? grouped(value) : brief(value, 3);
}

/** A number as one would type it into a field: '150', '0.5', '1000000000'. */
export function typed(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toFixed(0) : brief(value, 12);
}

/** Whole minutes at 220 words a minute, at least one. */
export function readingMinutes(text: string): number {
  return Math.max(1, Number(fixed(text.split(/\s+/).filter(Boolean).length / WORDS_PER_MINUTE, 0)));
}
