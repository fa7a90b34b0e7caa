// @ts-check
// What a page has no more than a place for, since it is on its way, is put there once it has come.

const POLL_MS = 1000;

export function awaitComing() {
  const place = document.querySelector("[data-coming]");
  if (place) look(place);
}

/** @param {Element} place */
function look(place) {
  setTimeout(async () => {
    try {
      const answer = await fetch(location.href);
      const now = answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(place.id) : null;
      if (now) {
        if (now.innerHTML !== place.innerHTML) place.replaceChildren(...now.childNodes);
        if (!now.matches("[data-coming]")) return place.removeAttribute("data-coming");
      }
    } catch {
      // The app was stopped or is starting again: the page stays as it is and asks again.
    }
    look(place);
  }, POLL_MS);
}
