// @ts-check
// Applies the text size and the theme that the reader chose in this browser. A script of its own, which the page waits
// for, so that nothing changes after the first paint.
{
  const { dataset } = document.documentElement;
  for (const name of ["text", "theme"]) {
    try {
      const chosen = localStorage.getItem(`ownfeed.${name}`);
      if (chosen !== null) dataset[name] = chosen;
    } catch {
      break; // storage is switched off: the page looks as by default
    }
  }
  // the browser's own bars have the colour of the chosen theme, not of the system's
  const bars = [...document.querySelectorAll("meta[name=theme-color]")].map((bar) => ({ bar, usual: String(bar.getAttribute("media")) }));
  const media = (/** @type {string} */ usual) => (!dataset.theme ? usual : usual.includes(dataset.theme) ? "all" : "not all");
  const follow = () => bars.forEach(({ bar, usual }) => bar.setAttribute("media", media(usual)));
  follow();
  new MutationObserver(follow).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}
