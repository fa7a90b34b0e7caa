// @ts-check
// j and k walk from story to story, o opens, l likes, / goes to the search field; Escape closes the drawer one is in.

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const deed = DEEDS[event.key];
    if (deed?.()) event.preventDefault();
  });
}

/** @type {Record<string, () => boolean>} */
const DEEDS = {
  j: () => walk(1),
  k: () => walk(-1),
  o: () => {
    const link = headline(current());
    link?.click();
    return link !== null;
  },
  l: () => {
    const like = current()?.querySelector('button[name="kind"][value="like"]');
    if (!(like instanceof HTMLButtonElement)) return false;
    like.click();
    return true;
  },
  "/": () => {
    const field = document.querySelector('main input[type="search"]') ?? document.querySelector("input#find");
    if (!(field instanceof HTMLInputElement)) return false;
    if (field.checkVisibility()) {
      field.focus();
      return true;
    }
    const link = document.querySelector('nav a[href$="/search"]'); // which a narrow page has in place of the field
    if (!(link instanceof HTMLAnchorElement)) return false;
    link.click();
    return true;
  },
  Escape: () => {
    const drawer = document.activeElement?.closest("details[open]");
    const handle = drawer?.querySelector("summary");
    if (!(drawer instanceof HTMLDetailsElement) || !handle) return false;
    drawer.open = false;
    handle.focus();
    return true;
  },
};

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

function stories() {
  return [...document.querySelectorAll("[data-story]")];
}

/** @returns {Element | null} */
function current() {
  return document.activeElement?.closest("[data-story]") ?? document.querySelector("main article[data-story]:only-of-type");
}

/**
 * @param {Element | null | undefined} story
 * @returns {HTMLAnchorElement | null}
 */
function headline(story) {
  const link = story?.querySelector(".headline a") ?? null;
  return link instanceof HTMLAnchorElement ? link : null;
}

/** @param {number} step */
function walk(step) {
  const all = stories().filter((one) => headline(one)?.checkVisibility({ visibilityProperty: true }));
  const at = all.indexOf(/** @type {Element} */ (document.activeElement?.closest("[data-story]")));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step];
  const link = headline(next);
  link?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "center", behavior: "auto" });
  return link !== null;
}
