// @ts-check
// Adds more stories at the end of a list in place: a feed page grows on the device and is read back from it; for other
// lists the next page is fetched, and fetched again after going back, so that the position can be restored.

import { watchMore } from "./seen.js";
import { announce } from "./still.js";

export function addMore() {
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form instanceof HTMLFormElement && form.matches("[data-more]")) {
      event.preventDefault();
      void growFeed(form);
    }
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[data-more]") : null;
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    void growList(link).then((added) => {
      if (added === null) location.href = link.href;
      else {
        history.replaceState({ ...history.state, more: (history.state?.more ?? 0) + 1 }, "");
        say(added);
      }
    });
  });
}

/** After going back: loads as many pages below the first as there were. */
export async function restoreMore() {
  const [entry] = performance.getEntriesByType("navigation");
  if (!(entry instanceof PerformanceNavigationTiming) || entry.type !== "back_forward") return;
  for (let left = history.state?.more ?? 0; left > 0; left -= 1) {
    const link = document.querySelector("a[data-more]");
    if (!(link instanceof HTMLAnchorElement) || (await growList(link)) === null) return;
  }
}

/** @param {HTMLFormElement} form */
async function growFeed(form) {
  const button = form.querySelector("button");
  if (button) button.disabled = true;
  try {
    const told = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, String(value)])),
      headers: { accept: "application/json" },
    });
    const fresh = told.ok ? await load(document.querySelector("main")?.dataset.page ?? location.href) : null;
    const now = fresh?.querySelector("[data-more-place]");
    if (!fresh || !now) throw new Error("the device gave no page");
    const cards = [...fresh.querySelectorAll("[data-batch]")].filter((batch) => !document.getElementById(batch.id));
    document.querySelector("[data-list]")?.append(...cards);
    form.closest("[data-more-place]")?.replaceChildren(...now.childNodes);
    say(cards.flatMap((batch) => [...batch.querySelectorAll("[data-story]")]));
  } catch {
    form.submit();
  }
}

/**
 * @param {HTMLAnchorElement} link
 * @returns {Promise<Element[] | null>} the cards that were added, null if the page did not come
 */
async function growList(link) {
  const fresh = await load(link.href);
  const list = document.querySelector("[data-list]");
  const next = fresh?.querySelector("[data-list]");
  const place = fresh?.querySelector("[data-more-place]");
  if (!list || !next || !place) return null;
  const added = [...next.querySelectorAll("[data-story]")];
  for (const section of [...next.children]) {
    const last = list.lastElementChild;
    const same = last && heading(last) === heading(section);
    if (same) last.querySelector(".cards")?.append(...(section.querySelector(".cards")?.children ?? []));
    else list.append(section);
  }
  place.querySelector(".newer")?.remove();
  const upto = fresh?.querySelector("[data-upto]")?.getAttribute("data-upto");
  for (const said of document.querySelectorAll("[data-upto]")) said.textContent = upto ?? "";
  link.closest("[data-more-place]")?.replaceChildren(...place.childNodes);
  return added;
}

/** @param {Element} section */
function heading(section) {
  return section.querySelector("h2")?.textContent ?? section.getAttribute("aria-label");
}

/** @param {string} address */
async function load(address) {
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null;
  }
}

/** Announces the new cards and focuses the first. @param {Element[]} cards */
function say(cards) {
  watchMore(cards);
  const first = cards[0]?.querySelector(".headline a");
  if (first instanceof HTMLElement) first.focus({ preventScroll: true });
  announce(cards.length === 1 ? "1 more story" : `${cards.length} more stories`);
}
