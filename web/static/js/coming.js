// @ts-check
// Fills placeholders of a page once their content has arrived.

import { announce } from "./still.js";

const POLL_MS = 1000;

export function awaitComing() {
  const place = document.querySelector("[data-coming]");
  if (place) look(place);
}

/** @param {Element} place */
function look(place) {
  setTimeout(async () => {
    if (document.hidden) return look(place);
    try {
      const answer = await fetch(location.href);
      const now = answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(place.id) : null;
      if (now) {
        if (now.innerHTML !== place.innerHTML) place.replaceChildren(...now.childNodes);
        if (!now.matches("[data-coming]")) {
          place.removeAttribute("data-coming");
          return announce("The sections have come");
        }
      }
    } catch {
      // The app was stopped or is restarting: the page stays as it is and asks again.
    }
    look(place);
  }, POLL_MS);
}
