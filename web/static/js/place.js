// @ts-check
// Keeps the reader's place: the browser's cache never stores pages, so going back loads the feed again, and the opened
// story is scrolled to where it was. Also scrolls the current page's tab into view, and makes "Back" on a story a
// history step if possible.

const KEY = "ownfeed.place";

export function keepPlace() {
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("[data-story] a") : null;
    const story = link?.closest("[data-story][id]");
    if (link?.matches("[data-beside]")) sessionStorage.removeItem(KEY); // a step back no longer leads to the list
    if (story) {
      const place = {
        page: location.pathname + location.search,
        id: story.id,
        top: story.getBoundingClientRect().top,
        opened: link instanceof HTMLAnchorElement ? link.pathname : "",
      };
      sessionStorage.setItem(KEY, JSON.stringify(place));
    }
  });
  restorePlace();
  showTab();
  const back = document.querySelector("a[data-back]");
  back?.addEventListener("click", (event) => {
    if (history.length > 1 && readPlace()?.opened === location.pathname) {
      event.preventDefault();
      history.back();
    }
  });
}

/** Scrolls the current page's tab into view without scrolling the page; a focused tab becomes fully visible. */
function showTab() {
  const tabs = document.querySelector(".tabs");
  const tab = tabs?.querySelector("[aria-current]");
  if (!tabs || !tab) return;
  const [line, mine] = [tabs.getBoundingClientRect(), tab.getBoundingClientRect()];
  tabs.scrollLeft += mine.left + mine.width / 2 - line.left - line.width / 2;
  tabs.addEventListener("focusin", ({ target }) => {
    if (target instanceof Element) target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}

function restorePlace() {
  const [entry] = performance.getEntriesByType("navigation");
  if (!(entry instanceof PerformanceNavigationTiming) || entry.type !== "back_forward") return;
  const place = readPlace();
  const story = place && document.getElementById(place.id);
  if (!place || !story || place.page !== location.pathname + location.search) return;
  sessionStorage.removeItem(KEY);
  history.scrollRestoration = "manual";
  scrollBy(0, story.getBoundingClientRect().top - place.top);
}

/** @returns {{page: string, id: string, top: number, opened: string} | null} */
function readPlace() {
  const text = sessionStorage.getItem(KEY);
  return text === null ? null : JSON.parse(text);
}
