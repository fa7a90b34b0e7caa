// Which addresses an article's link may have: public web pages outside the reader's machine and network.

/** Names for the reader's machine or network: RFC 6761, 6762 (appendix G), 8375, ICANN, and common practice. */
const LOCAL_NAMES = /^(?:.*\.)?(?:localhost|localdomain|local|internal|home\.arpa|intranet|private|corp|home|lan)$/;
/** IPv4 networks without publishers, from IANA's special-purpose registry; 168.63.129.16 is a cloud provider's. */
const RESERVED = [
  [0, 0, 0, 0, 8], [10, 0, 0, 0, 8], [100, 64, 0, 0, 10], [127, 0, 0, 0, 8], [168, 63, 129, 16, 32], [169, 254, 0, 0, 16],
  [172, 16, 0, 0, 12], [192, 0, 0, 0, 24], [192, 0, 2, 0, 24], [192, 88, 99, 0, 24], [192, 168, 0, 0, 16],
  [198, 18, 0, 0, 15], [198, 51, 100, 0, 24], [203, 0, 113, 0, 24], [224, 0, 0, 0, 3],
] as const; // prettier-ignore

const OF_IPV6 = /^(?:[^[\]]*@)?\[[\dA-Fa-f:.]+\](?::\d*)?$/;

/**
 * Whether a browser opens this as a web page outside the reader's own machine and network.
 *
 * False for anything but an http or https address with a host; for loopback, private, link-local and reserved addresses
 * in any notation that browsers read (URL handles them all); and for names such as localhost, printer.local and those
 * without a dot. The address that a public name resolves to isn't known here.
 */
export function leadsOut(url: string): boolean {
  if (!isWebAddress(url)) return false;
  const host = hostOf(url);
  if (host === null) return false;
  if (host.startsWith("[")) return isPublicV6(host.slice(1, -1));
  if (/^\d+\.\d+\.\d+\.\d+$/.test(host)) return isPublicV4(host); // URL normalises every IPv4 address to this
  const name = host.replace(/\.+$/, "");
  return name.includes(".") && !LOCAL_NAMES.test(name);
}

/** Whether a link leads to the host of the page that shows it, on any port. */
export function leadsHome(url: string, page: string): boolean {
  const host = hostOf(url);
  return host !== null && host.replace(/\.$/, "") === hostOf(page)?.replace(/\.$/, "");
}

/** The host as browsers normalise it, IPv6 in brackets; null for an address that browsers don't open. */
function hostOf(url: string): string | null {
  try {
    return new URL(url).hostname;
  } catch {
    return null;
  }
}

/** Whether it is http or https with a host, and nothing that a browser would strip. */
function isWebAddress(url: string): boolean {
  // browsers drop line breaks and tabs anywhere: they read "java\nscript:" as a script
  if (/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(url) || url.startsWith(" ") || url.endsWith(" ")) return false;
  const place = /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  // a backslash ends the host in browsers, but not in other parsers
  if (place === undefined || place.includes("\\")) return false;
  const named = /\P{ASCII}/u.test(place) ? place.replace(/[@:#?]/g, "") : "";
  if (named !== named.normalize("NFKC") && /[/?#@:]/.test(named.normalize("NFKC"))) return false;
  if (/[[\]]/.test(place)) return OF_IPV6.test(place);
  return !/^(?::|$)/.test(place.slice(place.lastIndexOf("@") + 1));
}

function isPublicV4(host: string): boolean {
  const value = (numbers: readonly number[]) => numbers.reduce((found, number) => found * 256 + number, 0);
  const address = value(host.split(".").map(Number));
  return !RESERVED.some(([a, b, c, d, bits]) => {
    const size = 2 ** (32 - bits);
    return Math.floor(address / size) === Math.floor(value([a, b, c, d]) / size);
  });
}

/**
 * Whether it is in 2000::/3, except tunnels that carry an IPv4 address and documentation addresses. This covers all
 * public IPv6, without loopback, private, link-local and mapped IPv4.
 */
function isPublicV6(host: string): boolean {
  const [first = 0, second = 0] = host.split(":").map((group) => Number.parseInt(group || "0", 16));
  if ((first & 0xe000) !== 0x2000 || first === 0x2002) return false;
  if (first === 0x2001) return second >= 0x200 && second !== 0xdb8;
  return first !== 0x3fff || second >= 0x1000;
}
