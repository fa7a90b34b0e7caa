// @ts-check
// Says within seconds that the newsroom, or Ownfeed itself, does not answer, and takes back what is so no longer: what
// went wrong in the background, and a page that was made offline. Only this device is asked, and nothing moves.

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
        const { online, alerts } = await answer.json();
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
 * @param {boolean} online
 * @param {string[]} stand names of what still goes wrong
 */
function takeBack(online, stand) {
  for (const alert of document.querySelectorAll("[data-alert]")) {
    if (!stand.includes(alert.getAttribute("data-alert") ?? "")) over(alert, "data-over");
  }
  for (const notice of online ? document.querySelectorAll("[data-back]") : []) over(notice, "data-back");
}

/**
 * Say that it is over in the place that it had, which keeps its height.
 * @param {Element} said
 * @param {string} name of the attribute with the words
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
