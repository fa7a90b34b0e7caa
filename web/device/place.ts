// Page addresses and scroll positions in the browser.
//
// A page's address is stored in the fragment of the app's only address, because browsers don't send fragments. So a
// reload that bypasses the service worker, a new tab, a restored tab and a bookmark all request /reader/, whatever page
// is read. Also restores the scroll position on the way back, and sets the focus on a new page.

export const HOME = "/reader/";

/**
 * Converts a page's own address (/story/x?feed=f#part, as on the Python device) to its form in links, the address bar
 * and the history.
 */
export function inBar(own: string): string {
  return own === "/" ? HOME : `${HOME}#${own}`;
}

/** Extracts a page's own address from a link or the address bar, relative to `here`; null if it isn't the app's. */
export function own(address: string, here: string): string | null {
  const url = new URL(address, here);
  if (url.origin !== new URL(here).origin || url.pathname !== HOME) return null;
  return url.hash.startsWith("#/") ? url.hash.slice(1) : `/${url.hash}`;
}

/** Splits an own address into page and fragment; undefined if it has none. */
export function parted(own: string): [page: string, part: string | undefined] {
  const at = own.indexOf("#");
  return at < 0 ? [own, undefined] : [own.slice(0, at), own.slice(at + 1)];
}

/** The address-bar form of a page whose address is in the path, as typed or bookmarked. */
export function outOfPath(here: Location): string {
  if (here.hash.startsWith("#/")) return inBar(here.hash.slice(1));
  return inBar(`/${here.pathname.slice(HOME.length)}${here.search}${here.hash}`);
}

interface Left {
  readonly top: number;
  readonly focused: string | null;
  /** The installed build's hash; it survives in the tab's history when the browser clears all else. */
  readonly build: string | null;
}

/** The build installed when this history entry was left; null if there was none. */
export function markedBuild(): string | null {
  const { build } = (history.state ?? {}) as { build?: unknown };
  return typeof build === "string" ? build : null;
}

export class Place {
  private fromFeed = false;
  private build = markedBuild();

  /** Records the installed build in the tab's history from now on. */
  mark(build: string): void {
    this.build = build;
    this.markEntry();
  }

  /** Also called when a page is shown: writing only as a tab leaves the app may be too late. */
  private markEntry(): void {
    const { build } = this;
    if (build === null || build === markedBuild()) return;
    history.replaceState({ top: scrollY, focused: null, ...(history.state as Partial<Left> | null), build } satisfies Left, "");
  }

  /** Stores the scroll position of the page being left, in its history entry. */
  leave(): void {
    const story = document.activeElement?.closest("[data-story][id]");
    const left: Left = { top: scrollY, focused: story?.id ?? null, build: this.build };
    this.fromFeed = document.querySelector("main[data-feed]") !== null;
    history.replaceState(left, "");
  }

  /** Whether the previous page is a feed, so that going back is a history step. */
  cameFromFeed(): boolean {
    return this.fromFeed;
  }

  /** Positions a new page: where the reader was, at the named part, or at the top. */
  arrive(back: boolean, part?: string): void {
    const left = back ? (history.state as Left | null) : null;
    if (back) this.fromFeed = false;
    const named = part ? document.getElementById(decodeURIComponent(part)) : null;
    const story = left?.focused ? document.getElementById(left.focused)?.querySelector<HTMLElement>(".headline a") : null;
    (story ?? document.getElementById("main"))?.focus({ preventScroll: true });
    if (left) scrollTo(0, left.top);
    else if (named) {
      named.focus({ preventScroll: true });
      named.scrollIntoView();
    }
    else scrollTo(0, 0);
    this.markEntry();
    const tabs = document.querySelector(".tabs");
    const tab = tabs?.querySelector("[aria-current]");
    if (tabs && tab) {
      const [line, mine] = [tabs.getBoundingClientRect(), tab.getBoundingClientRect()];
      tabs.scrollLeft += mine.left + mine.width / 2 - line.left - line.width / 2;
    }
  }
}
