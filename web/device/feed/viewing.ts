// What of a feed its reader has looked at. It sinks in later feeds, and nothing else does. The page says which cards had
// half of them in sight for a second; of a page that says nothing a story counts that was opened, and what was passed.
import type { Clock } from "../moments";
import type { ImpressionStore } from "../store/impressions";
import type { Feed, PageSlot } from "./item";

/** The other slots stand beside it on a wide page, where reading down one column passes nothing of the other. */
const MAIN_COLUMN: readonly PageSlot[] = ["lead", "for_you", "more"];

/** Notes looks at the stories of feeds. */
export class Viewing {
  private readonly watched = new Set<string>();

  constructor(
    private readonly impressions: ImpressionStore,
    private readonly feed: (feedId: string) => Feed | null,
    private readonly clock: Clock,
  ) {}

  /** A page has seen these looked at, perhaps none, when it begins; returns of how many that is news. */
  report(feedId: string, newsIds: readonly string[]): number {
    if (!this.impressions.served(feedId)) return 0; // nobody's, or erased while its page stood open
    this.watched.add(feedId);
    return newsIds.length ? this.impressions.view(feedId, newsIds, this.clock()) : 0;
  }

  forget(): void {
    this.watched.clear();
  }

  /** A story was opened from a feed: it was looked at; so was what stands above it, where nothing watches. */
  opened(feedId: string, newsId: string): void {
    const passed = this.watched.has(feedId) ? [] : this.above(feedId, newsId);
    this.impressions.view(feedId, [...passed, newsId], this.clock());
  }

  private above(feedId: string, newsId: string): string[] {
    const items = this.feed(feedId)?.items ?? [];
    const at = items.find((item) => item.card.id === newsId);
    if (!at) return [];
    const isMain = (slot: PageSlot) => MAIN_COLUMN.includes(slot);
    const column = items.filter((item) => isMain(item.slot) === isMain(at.slot));
    return column.filter((item) => item.position < at.position).map((item) => item.card.id);
  }
}
