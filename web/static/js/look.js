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
}
