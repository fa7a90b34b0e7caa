// @ts-check
// Shows within seconds that the server, or Ownfeed itself, doesn't answer, and withdraws messages that no longer hold:
// background errors, and the notice of a page made offline. Polls only this device, and doesn't shift the layout.

const LOOK_MS = 1500;
const STOPPED = "Ownfeed isn't running on this device";

export function watchPulse() {
  const line = document.querySelector("[data-pulse]");
  if (!(line instanceof HTMLElement)) return;
  const offline = line.textContent ?? "";
  const look = async () => {
    if (document.visibilityState !== "visible") return;
    let words = "";
    try {
      const answer = await fetch("/pulse", { signal: AbortSignal.timeout(LOOK_MS) });
      if (answer.ok) {
        const { online, alerts, preparing } = await answer.json();
        if (preparing !== undefined) sayPrepared(preparing);
        if (online === false) words = offline;
        takeBack(online === true, alerts);
      }
    } catch {
      words = STOPPED;
    }
    if (words !== "" && line.textContent !== words) line.textContent = words;
    line.hidden = words === "";
  };
  setInterval(() => void look(), LOOK_MS);
  document.addEventListener("visibilitychange", () => void look());
  if (document.querySelector("[data-kept]") !== null) void look();
}

/**
 * How far the first order of the stories is, on a page that shows them in order of time.
 * @param {string | null} preparing null: it is ready
 */
function sayPrepared(preparing) {
  for (const line of document.querySelectorAll("[data-prepared]")) {
    line.textContent = preparing ?? line.getAttribute("data-prepared");
  }
}

/**
 * @param {boolean} online
 * @param {string[]} stand names of the alerts that still hold
 */
function takeBack(online, stand) {
  for (const alert of document.querySelectorAll("[data-alert]")) {
    if (!stand.includes(alert.getAttribute("data-alert") ?? "")) over(alert, "data-over");
  }
  for (const notice of online ? document.querySelectorAll("[data-back]") : []) over(notice, "data-back");
}

/**
 * Replaces a message in place with its "over" text, keeping its height.
 * @param {Element} said
 * @param {string} name of the attribute with the text
 */
function over(said, name) {
  if (said.classList.contains("over")) return;
  const now = document.createElement("p");
  for (const { name: each, value } of said.attributes) now.setAttribute(each, value);
  now.classList.remove("exact");
  now.classList.add("over");
  now.style.minBlockSize = `${said.getBoundingClientRect().height}px`;
  now.textContent = said.getAttribute(name);
  said.replaceWith(now);
}
