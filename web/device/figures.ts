// Figures as people read them, by the rules of device_app/figures.py and of Python's formatting.

/** Python's `g`: so many significant digits, no zeros at the end, an exponent where it is below -4 or that many. */
export function brief(value: number, digits = 6): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [mantissa = "0", power = "0"] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) return trimmed(value.toFixed(Math.max(0, digits - 1 - exponent)));
  return `${trimmed(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/** A number with commas between thousands, and so many digits behind the point. */
export function grouped(value: number, digits = 0): string {
  const [whole = "", rest] = value.toFixed(digits).split(".");
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
