// Where a page of this device stands in the browser: in the fragment of the app's one address, as browsers send no
// fragment to anybody. So a reload past the service worker, a new tab, a restored one and a bookmark all ask the server
// for /reader/, whatever is read there.
export const HOME = "/reader/";

/** A page's own address (/story/x?feed=f#part, as on the Python device) as links, the bar and the history have it. */
export function inBar(own: string): string {
  return own === "/" ? HOME : `${HOME}#${own}`;
}

/** A page's own address out of one in a link or the bar, taken from `here`; null for one that is none of the app's. */
export function own(address: string, here: string): string | null {
  const url = new URL(address, here);
  if (url.origin !== new URL(here).origin || url.pathname !== HOME) return null;
  return url.hash.startsWith("#/") ? url.hash.slice(1) : `/${url.hash}`;
}

/** The page of an own address, and the part of it that is named; undefined: none is. */
export function parted(own: string): [page: string, part: string | undefined] {
  const at = own.indexOf("#");
  return at < 0 ? [own, undefined] : [own.slice(0, at), own.slice(at + 1)];
}

/** What stands in the bar for a page whose address is in the path, as somebody may have typed or kept it. */
export function outOfPath(here: Location): string {
  if (here.hash.startsWith("#/")) return inBar(here.hash.slice(1));
  return inBar(`/${here.pathname.slice(HOME.length)}${here.search}${here.hash}`);
}
