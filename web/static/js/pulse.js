// @ts-check
// Says within seconds that the newsroom, or Ownfeed itself, does not answer. Only this device is asked.

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
      if (answer.ok && (await answer.json()).online === false) words = offline;
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
