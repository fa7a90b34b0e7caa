// Actions that are not finished yet, for example on a page shown before its device has started: their controls show it,
// and no action is requested twice.
import type { Asking } from "./link";

type Form = NonNullable<Asking["form"]>;
const BUSY = "aria-busy";

export class UnderWay {
  /** Addresses of pending actions, by address and fields. */
  private readonly pending = new Map<string, string>();
  private link: string | null = null;

  /** own: extracts a page's own address from one in a link or form. */
  constructor(private readonly own: (address: string) => string | null) {}

  /** The own address of the last requested page; null once it has come. */
  get following(): string | null {
    return this.link;
  }

  set following(address: string | null) {
    this.link = address;
    this.mark();
  }

  /** Performs a form's action; does nothing if the same one is pending. */
  async once(address: string, fields: Form, work: () => Promise<void>): Promise<void> {
    const action = keyOf(address, fields);
    if (this.pending.has(action)) return;
    this.pending.set(action, address);
    this.mark();
    try {
      await work();
    } finally {
      this.pending.delete(action);
      this.mark();
    }
  }

  /** Marks the controls of pending actions; also needed after another page is shown. */
  mark(): void {
    const busy = new Set([...this.links(), ...this.buttons()]);
    for (const control of document.querySelectorAll(`:is(a, button, input)[${BUSY}]`))
      if (!busy.has(control)) control.removeAttribute(BUSY);
    for (const control of busy) if (control.getAttribute(BUSY) !== "true") control.setAttribute(BUSY, "true");
  }

  /** Links to the requested page, and the form that sends a search for it. */
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

  /** Buttons of pending actions. */
  private buttons(): Element[] {
    const addresses = new Set(this.pending.values());
    if (!addresses.size) return [];
    return [...document.forms].flatMap((form) => {
      const address = form.method === "post" ? this.own(form.action) : null;
      if (address === null || !addresses.has(address)) return [];
      const buttons = [...form.querySelectorAll<HTMLButtonElement>("button:not([type=button])")];
      return buttons.filter((button) => this.pending.has(keyOf(address, fieldsOf(form, button))));
    });
  }
}

/** The fields that a form sends; for a file, its name. */
export function fieldsOf(form: HTMLFormElement, submitter: HTMLElement | null = null): Form {
  return [...new FormData(form, submitter)].map(([name, value]) => [name, typeof value === "string" ? value : value.name]);
}

/** The address that a search form leads to. */
export function searchAddress(address: string, fields: Form): string {
  return `${address.split("?")[0]}?${new URLSearchParams(fields.map((field) => [...field]))}`;
}

const keyOf = (address: string, fields: Form) => JSON.stringify([address, fields]);
