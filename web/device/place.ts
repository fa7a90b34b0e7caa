// Where the reader is: the place on a page that is left, found again on the way back, and the focus after a page has come.

interface Left {
  readonly top: number;
  readonly focused: string | null;
}

export class Place {
  private fromFeed = false;

  /** Keep the place on the page that is being left, in its own entry of the history. */
  leave(): void {
    const story = document.activeElement?.closest("[data-story][id]");
    const left: Left = { top: scrollY, focused: story?.id ?? null };
    this.fromFeed = document.querySelector("main[data-feed]") !== null;
    history.replaceState(left, "");
  }

  /** Whether the page before this one is a feed, so that the way back is a step back. */
  cameFromFeed(): boolean {
    return this.fromFeed;
  }

  /** A page has come: its reader is put where they were, at the part that was named, or at its beginning. */
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
    const tabs = document.querySelector(".tabs");
    const tab = tabs?.querySelector("[aria-current]");
    if (tabs && tab) {
      const [line, mine] = [tabs.getBoundingClientRect(), tab.getBoundingClientRect()];
      tabs.scrollLeft += mine.left + mine.width / 2 - line.left - line.width / 2;
    }
  }
}
