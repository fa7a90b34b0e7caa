// Makes what stands in a document what another one says, and leaves alone what is alike in both: its focus, its place, and
// what the reader has opened in it.

/** The reader opens a drawer, not the page; and what the reader has pressed is under way, whatever the page says. */
const READERS_OWN: ReadonlySet<string> = new Set(["open", "aria-busy"]);

/** Children of `here` become those of `now`, which is used up. */
export function becomeAlike(here: Element, now: Element): void {
  const [mine, theirs] = [[...here.childNodes], [...now.childNodes]];
  if (mine.length !== theirs.length || mine.some((node, at) => node.nodeName !== theirs[at]?.nodeName))
    return here.replaceChildren(...theirs);
  mine.forEach((node, at) => {
    const other = theirs[at];
    if (!other || node.isEqualNode(other)) return;
    if (node instanceof Element && other instanceof Element) {
      takeAttributes(node, other);
      becomeAlike(node, other);
    } else node.nodeValue = other.nodeValue;
  });
}

function takeAttributes(here: Element, now: Element): void {
  for (const { name } of [...here.attributes]) if (!now.hasAttribute(name) && !READERS_OWN.has(name)) here.removeAttribute(name);
  for (const { name, value } of now.attributes) if (here.getAttribute(name) !== value) here.setAttribute(name, value);
}
