// What was pressed and is not done yet, as on a page that stands before its device has started: its controls say so, and no
// deed is asked for a second time meanwhile.
import type { Asking } from "./asking";

type Form = NonNullable<Asking["form"]>;
const BUSY = "aria-busy";

export class UnderWay {
  /** Deeds by their address and fields; each one's address. */
  private readonly deeds = new Map<string, string>();
  private link: string | null = null;

  /** own: a page's own address, out of one in a link or a form. */
  constructor(private readonly own: (address: string) => string | null) {}

  /** The page that was asked for last, by its own address; null once it has come. */
  get following(): string | null {
    return this.link;
  }

  set following(address: string | null) {
    this.link = address;
    this.mark();
  }

  /** Do what a form asks for; nothing where the same is under way. */
  async once(address: string, fields: Form, work: () => Promise<void>): Promise<void> {
    const deed = keyOf(address, fields);
    if (this.deeds.has(deed)) return;
    this.deeds.set(deed, address);
    this.mark();
    try {
      await work();
    } finally {
      this.deeds.delete(deed);
      this.mark();
    }
  }

  /** Have the controls of the document say what is under way: also needed where another page has taken its place. */
  mark(): void {
    const busy = new Set([...this.links(), ...this.buttons()]);
    for (const control of document.querySelectorAll(`:is(a, button, input)[${BUSY}]`))
      if (!busy.has(control)) control.removeAttribute(BUSY);
    for (const control of busy) if (control.getAttribute(BUSY) !== "true") control.setAttribute(BUSY, "true");
  }

  /** Links to the page that was asked for, and what sends a search for it. */
  private links(): Element[] {
    const wanted = this.link;
    if (wanted === null) return [];
    const anchors = [...document.querySelectorAll<HTMLAnchorElement>("a[href]")].filter(({ href }) => this.own(href) === wanted);
    const searches = [...document.forms].filter((form) => {
      const address = form.method === "get" ? this.own(form.action) : null;
      return address !== null && searchAddress(address, fieldsOf(form)) === wanted;
    });
    return [...anchors, ...searches.flatMap((form) => [...form.querySelectorAll("button, input[type=search]")])];
  }

  /** Buttons of the deeds. */
  private buttons(): Element[] {
    const addresses = new Set(this.deeds.values());
    if (!addresses.size) return [];
    return [...document.forms].flatMap((form) => {
      const address = form.method === "post" ? this.own(form.action) : null;
      if (address === null || !addresses.has(address)) return [];
      const buttons = [...form.querySelectorAll<HTMLButtonElement>("button:not([type=button])")];
      return buttons.filter((button) => this.deeds.has(keyOf(address, fieldsOf(form, button))));
    });
  }
}

/** What a form sends; of a file its name. */
export function fieldsOf(form: HTMLFormElement, submitter: HTMLElement | null = null): Form {
  return [...new FormData(form, submitter)].map(([name, value]) => [name, typeof value === "string" ? value : value.name]);
}

/** Where a form leads that only looks for something. */
export function searchAddress(address: string, fields: Form): string {
  return `${address.split("?")[0]}?${new URLSearchParams(fields.map((field) => [...field]))}`;
}

const keyOf = (address: string, fields: Form) => JSON.stringify([address, fields]);
