// @ts-check
// Keeps the parts of an open page that have data-now as the device would draw them now.

const LOOK_MS = 1000;
/** Attributes that the reader's actions set: an open drawer, and a pressed button's pending state. */
const READERS_OWN = new Set(["open", "aria-busy"]);

/**
 * Updates the parts every second while the page is shown. load: returns the page as it is now; null if it can't be had.
 * @param {() => Promise<Document | null>} load
 */
export function keepUpToDate(load) {
  const parts = [...document.querySelectorAll("[data-now]")];
  const look = async () => {
    const page = document.hidden ? null : await load();
    if (!parts[0]?.isConnected) return;
    const now = [...(page?.querySelectorAll("[data-now]") ?? [])];
    parts.forEach((part, at) => now[at] && becomeAlike(part, now[at]));
    setTimeout(look, LOOK_MS);
  };
  if (parts.length) setTimeout(look, LOOK_MS);
}

/** Makes the children of `here` equal to those of `now`, which is consumed. @param {Element} here @param {Element} now */
export function becomeAlike(here, now) {
  const [mine, theirs] = [[...here.childNodes], [...now.childNodes]];
  if (mine.length !== theirs.length || mine.some((node, at) => node.nodeName !== theirs[at]?.nodeName))
    return here.replaceChildren(...theirs);
  mine.forEach((node, at) => {
    const other = theirs[at];
    if (!other || node.isEqualNode(other)) return;
    if (node instanceof Element && other instanceof Element) {
      for (const { name } of [...node.attributes]) if (!other.hasAttribute(name) && !READERS_OWN.has(name)) node.removeAttribute(name);
      for (const { name, value } of other.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
      becomeAlike(node, other);
    } else node.nodeValue = other.nodeValue;
  });
}

