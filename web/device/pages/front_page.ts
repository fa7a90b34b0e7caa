// Stores the front page, as a newly opened device would draw it, for the next tab. The reader's next action removes it
// before it is performed, so that no tab shows an outdated page.
import type { Asking } from "../link";
import { HOUR_MS, msOf } from "../protocol/moments";
import type { FrontPage, FrontPageFile } from "../store/front_page";
import { frontPage } from "./feed_pages";
import type { Pictures } from "./art";
import { KEPT, type PageRenderer } from "./renderer";

/** A page is kept after this long without a request. */
const KEPT_AFTER_MS = 300;
const PICTURE = /<img\b[^>]* src="([^"]*)"/g;
/** The templates' escapes for characters of an address. */
const WRITTEN: Readonly<Record<string, string>> = { "&amp;": "&", "&#x2f;": "/", "&#x27;": "'", "&quot;": '"' };
/** Seen cards change at most a number in the page's offer, which the next stored page will have right. */
const SEEN_FORM = "/seen";
const DELETES = /\/(?:delete|forget|erase)$/;

/** The kept page couldn't be overwritten, so nothing that it may show is deleted. The message is for readers. */
export class NotOverwritten extends Error {
  constructor() {
    super(KEPT.say("not_overwritten"));
  }
}

export class FrontPages {
  private deeds = 0;
  private state = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** script: the address of this worker's script, whose templates and texts the page is drawn with. */
  constructor(
    private readonly renderer: PageRenderer,
    private readonly pictures: Pictures,
    private readonly file: FrontPageFile,
    private readonly script: string,
  ) {}

  /**
   * Answers a page's question. If the action changes the front page, no outdated one remains, whenever this worker is
   * killed. Throws NotOverwritten before a deletion.
   */
  async around<R>(request: Asking, answer: () => Promise<R>): Promise<R> {
    const isAction = (request.form !== null && request.address !== SEEN_FORM) || (request.followed && request.address.startsWith("/story/"));
    if (!isAction) {
      const response = await answer();
      if (request.address === "/") this.keepSoon();
      return response;
    }
    this.deeds += 1;
    this.state += 1;
    try {
      await this.takeAway(request);
      return await answer();
    } finally {
      this.deeds -= 1;
      this.keepSoon();
    }
  }

  /** Notes that the page may have changed, and stores it again at the next idle moment. */
  keepSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (!this.deeds) void this.keep().catch((fault: unknown) => console.error("the front page was not kept:", fault));
    }, KEPT_AFTER_MS);
  }

  /** Overwrites the kept page so that no tab shows it; removes it if it can't be overwritten. */
  private async takeAway({ address, form }: Asking): Promise<void> {
    try {
      this.file.wipe({ waits: form !== null }); // opening a story deletes nothing
    } catch (fault) {
      console.error("the front page was not overwritten:", fault);
      await this.file.remove().catch((left: unknown) => console.error("and is still there:", left));
      if (form !== null && DELETES.test(address)) throw new NotOverwritten();
    }
  }

  private async keep(): Promise<void> {
    const mine = (this.state += 1);
    const page = this.drawn();
    if (page) await this.file.keep(page, () => mine === this.state);
    else this.file.wipe();
  }

  /**
   * Draws the page to store. Returns null if a device opened now would show another page, if the page has messages for
   * this visit only, or if the drawn pictures aren't loaded yet.
   */
  drawn(): FrontPage | null {
    if (!this.pictures.loaded) return null;
    const { device } = this.renderer;
    const { serving } = device.parts;
    const { alerts, online } = device.status();
    const feed = alerts.length || online === false ? null : serving.held();
    const page = feed && frontPage(this.renderer, feed, device.reading.offer(feed, { ofThisVisit: false }));
    if (!feed || page?.kind !== "page") return null;
    const madeAt = msOf(feed.made_at);
    const hours = serving.context.weights.page_hours * HOUR_MS;
    const named = [...page.html.matchAll(PICTURE)].map(([, address = ""]) => read(address));
    const pictures = Object.fromEntries(named.map((address) => [address, this.pictures.at(address)]));
    return { script: this.script, from: madeAt - hours, until: madeAt + hours, html: page.html, pictures };
  }
}

const read = (address: string) => address.replace(/&[#\w]+;/g, (written) => WRITTEN[written] ?? written);
