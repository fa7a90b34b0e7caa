// @ts-check
// Live view of a round: figures are refreshed in place, and the page reloads when the round advances.

const POLL_MS = 2000;

export function watchRound() {
  for (const block of document.querySelectorAll("[data-live]"))
    if (block instanceof HTMLElement && !["", "applied", "failed", "published"].includes(block.dataset.state ?? "")) poll(block);
}

/** @param {HTMLElement} block */
function poll(block) {
  setTimeout(async () => {
    if (document.hidden) return poll(block);
    try {
      const answer = await fetch(block.dataset.live ?? "", { headers: { accept: "application/json" } });
      if (answer.ok) {
        /** @type {{state?: string, figures?: Record<string, string>}} */
        const live = await answer.json();
        if (live.state !== block.dataset.state) {
          // A reload would send a refused form again; without it, the form's fields keep what was typed.
          return document.querySelector('[role="alert"]') ? undefined : location.reload();
        }
        for (const [name, value] of Object.entries(live.figures ?? {})) {
          const figure = block.querySelector(`[data-figure="${name}"]`);
          if (figure && figure.textContent !== value) figure.textContent = value;
        }
      }
    } catch {
      // The app was stopped or is restarting: the page stays as it is and asks again.
    }
    poll(block);
  }, POLL_MS);
}
