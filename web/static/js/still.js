// @ts-check
// Keeps a page stable: updates only the state of its cards, and the offer to replace it, from the device.

const LOOK_MS = 60_000;
let asked = 0;

export function holdStill() {
  if (document.querySelector("[data-offer]") === null) return;
  setInterval(() => void look(), LOOK_MS);
  document.addEventListener("visibilitychange", () => void look());
  addEventListener("pageshow", (event) => {
    if (event.persisted) void look();
  });
}

async function look() {
  if (document.visibilityState === "visible") await catchUp();
}

/**
 * Updates the cards' state from this page as the device would draw it now. `hidden`: the reader has just hidden
 * something, so a card that the list no longer has leaves an empty place.
 * @param {{hidden?: boolean}} [after]
 */
export async function catchUp({ hidden = false } = {}) {
  if (document.querySelector("[data-veil]") === null) return;
  const mine = ++asked;
  const fresh = await load(document.querySelector("main")?.dataset.page ?? location.href);
  if (fresh === null || mine !== asked) return;
  for (const card of document.querySelectorAll("[data-story][id]")) {
    const now = fresh.getElementById(card.id);
    if (now !== null) takeOver(card, now, announce);
    else if (hidden) card.classList.add("gone");
  }
  replace(document.querySelector("[data-offer]"), fresh.querySelector("[data-offer]"));
}

/** Returns a page of the device. @param {string} address */
export async function load(address) {
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null; // the app was stopped or is restarting: the page stays as it is
  }
}

/**
 * Gives a card the state that it has now. say: announces what its veil says.
 * @param {Element} card
 * @param {Element} now
 * @param {(words: string) => void} say
 */
export function takeOver(card, now, say) {
  if (card.className !== now.className) card.className = now.className;
  const states = [...now.querySelectorAll("form[data-react] button")];
  card.querySelectorAll("form[data-react] button").forEach((button, at) => {
    const state = states[at]?.getAttribute("aria-pressed");
    if (state && button.getAttribute("aria-pressed") !== state) button.setAttribute("aria-pressed", state);
  });
  const veil = now.querySelector("[data-veil]");
  const said = veil?.querySelector("p")?.textContent;
  if (replace(card.querySelector("[data-veil]"), veil) && said) say(said);
}

/**
 * @param {Element | null} place
 * @param {Element | null} now
 * @returns {boolean} whether anything changed
 */
export function replace(place, now) {
  if (place === null || now === null || place.innerHTML === now.innerHTML) return false;
  place.replaceChildren(...now.childNodes);
  return true;
}

/** Announces a message to screen readers. @param {string} words */
export function announce(words) {
  let line = document.getElementById("announced");
  if (line === null) {
    line = document.createElement("p");
    line.id = "announced";
    line.className = "hidden";
    line.setAttribute("role", "status");
    document.querySelector("main")?.append(line);
  }
  line.textContent = words;
}
