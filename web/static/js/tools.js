// @ts-check
// A reader's tools: text size and theme, which stay in this browser, and sharing a story's address. Ownfeed sends nothing:
// the address goes to the system's own sharing dialog, else to the clipboard.

const LOOKS = ["text", "theme"];

export function listenToTools() {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (!button) return;
    for (const name of LOOKS) {
      const chosen = button.getAttribute(`data-set-${name}`);
      if (chosen !== null) choose(name, chosen);
    }
    if (button.dataset.share) void share(button, button.dataset.share);
  });
  addEventListener("storage", ({ key, newValue }) => {
    for (const name of LOOKS) if (key === `ownfeed.${name}`) apply(name, newValue ?? "");
  });
  markLook();
}

/** Marks the buttons of what is chosen; needed again when the page was replaced. */
export function markLook() {
  for (const name of LOOKS)
    for (const button of document.querySelectorAll(`[data-set-${name}]`)) {
      const on = button.getAttribute(`data-set-${name}`) === (document.documentElement.dataset[name] ?? "");
      button.setAttribute("aria-pressed", String(on));
    }
}

/**
 * @param {string} name
 * @param {string} chosen
 */
function choose(name, chosen) {
  apply(name, chosen);
  try {
    if (chosen) localStorage.setItem(`ownfeed.${name}`, chosen);
    else localStorage.removeItem(`ownfeed.${name}`);
  } catch {
    // storage is switched off: the choice lasts as long as the page
  }
}

/**
 * @param {string} name
 * @param {string} chosen "" for the default
 */
function apply(name, chosen) {
  if (chosen) document.documentElement.dataset[name] = chosen;
  else delete document.documentElement.dataset[name];
  markLook();
}

/**
 * @param {HTMLButtonElement} button
 * @param {string} url
 */
async function share(button, url) {
  const { title = "", copied = "", failed = "" } = button.dataset;
  if ("share" in navigator) {
    // rejects if the reader closes the dialog, which needs no message
    await navigator.share({ title, url }).catch(() => undefined);
    return;
  }
  const said = button.parentElement?.querySelector("[data-shared]");
  const done = await copy(url);
  if (said) said.textContent = done ? copied : `${failed} ${url}`;
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
