// @ts-check
// Reports cards as seen: half of a card, or half a window of it, in sight for a second. Only this device is notified.

const LOOK_MS = 1000;
const TELL_MS = 2000;
const STEPS = [0, 0.1, 0.2, 0.3, 0.4, 0.5];

/** @type {(cards: Element[]) => void} */
let observe = () => {};

/** Also watches cards that were added below. @param {Element[]} cards */
export function watchMore(cards) {
  observe(cards);
}

export function watchCards() {
  const feed = document.querySelector("main")?.dataset.feed;
  if (feed === undefined) return;
  /** @type {Map<Element, number>} */
  const timers = new Map();
  /** @type {Set<Element>} */
  const inSight = new Set();
  /** @type {Set<string>} */
  const untold = new Set();

  const tell = () => {
    if (untold.size === 0) return;
    post(feed, [...untold]);
    untold.clear();
  };
  /** @param {Element} card */
  const begin = (card) => {
    if (document.visibilityState !== "visible" || timers.has(card)) return;
    timers.set(card, setTimeout(() => {
      observer.unobserve(card);
      inSight.delete(card);
      timers.delete(card);
      untold.add(card.id.replace(/^n-/, ""));
    }, LOOK_MS));
  };
  /** @param {Element} card */
  const stop = (card) => {
    clearTimeout(timers.get(card));
    timers.delete(card);
  };
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const half = entry.intersectionRatio >= 0.5 || entry.intersectionRect.height >= innerHeight / 2;
      if (half) {
        inSight.add(entry.target);
        begin(entry.target);
      } else {
        inSight.delete(entry.target);
        stop(entry.target);
      }
    }
  }, { threshold: STEPS });

  post(feed, []); // from here on a script reports views: stories above an opened one aren't assumed to be seen
  observe = (cards) => cards.forEach((card) => observer.observe(card));
  observe([...document.querySelectorAll("main [data-story][id]")]);
  setInterval(tell, TELL_MS);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") inSight.forEach(begin);
    else {
      [...timers.keys()].forEach(stop);
      tell();
    }
  });
  addEventListener("pagehide", tell);
}

/**
 * @param {string} feed
 * @param {string[]} news
 */
function post(feed, news) {
  const data = new URLSearchParams({ feed });
  for (const one of news) data.append("news", one);
  navigator.sendBeacon("/seen", data);
}
