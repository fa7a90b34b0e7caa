// @ts-check
// Keyboard shortcuts, as the sheet in the page lists them; "?" shows it. Escape closes the current drawer.

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") && event.key !== "?") return;
    const act = ACTIONS[event.key];
    if (act?.()) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Element && event.target.closest("[data-keys]")) showSheet();
  });
}

/** @type {Record<string, () => boolean>} */
const ACTIONS = {
  j: () => walk(1),
  k: () => walk(-1),
  o: () => {
    const link = headline(current());
    link?.click();
    return link !== null;
  },
  v: () => {
    const story = current();
    const outward = story?.querySelector('a[rel~="external"]');
    const address = story?.getAttribute("data-original") ?? (outward instanceof HTMLAnchorElement ? outward.href : null);
    if (!address) return false;
    window.open(address, "_blank", "noopener,noreferrer");
    if (!outward) press('button[value="read"][aria-pressed="false"]');
    return true;
  },
  m: () => press('button[value="read"]'),
  s: () => press('button[value="save"]'),
  l: () => press('button[value="like"]'),
  A: () => click(document.querySelector("form[data-mark-all] button")),
  r: () => {
    if (!click(document.querySelector("main [data-offer] form button"))) location.reload();
    return true;
  },
  "/": () => {
    const field = document.querySelector('main input[type="search"]') ?? document.querySelector("input#find");
    if (!(field instanceof HTMLInputElement)) return false;
    if (field.checkVisibility()) {
      field.focus();
      return true;
    }
    // which a narrow page has in place of the field
    return click(document.querySelector('nav a[href$="/search"]'));
  },
  "?": showSheet,
  Escape: () => {
    const drawer = document.activeElement?.closest("details[open]");
    const handle = drawer?.querySelector("summary");
    if (!(drawer instanceof HTMLDetailsElement) || !handle) return false;
    drawer.open = false;
    handle.focus();
    return true;
  },
};

/** Shows the sheet of keys, or closes it; the browser moves the focus into it and back. */
function showSheet() {
  const sheet = document.getElementById("keys");
  if (!(sheet instanceof HTMLDialogElement)) return false;
  if (sheet.open) sheet.close();
  else sheet.showModal();
  return true;
}

/** Presses a button of the current story. @param {string} button */
function press(button) {
  return click(current()?.querySelector(`form[data-react] ${button}`));
}

/** @param {Element | null | undefined} target */
function click(target) {
  if (!(target instanceof HTMLElement)) return false;
  target.click();
  return true;
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
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

/** On a story, opens the one beside it on the page it was opened from; on a page, moves on. @param {number} step */
function walk(step) {
  if (click(document.querySelector(`main [data-beside="${step > 0 ? "next" : "previous"}"]`))) return true;
  const all = [...document.querySelectorAll("[data-story]")].filter((one) =>
    headline(one)?.checkVisibility({ visibilityProperty: true }),
  );
  const at = all.indexOf(/** @type {Element} */ (document.activeElement?.closest("[data-story]")));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step];
  const link = headline(next);
  link?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "center", behavior: "auto" });
  return link !== null;
}
