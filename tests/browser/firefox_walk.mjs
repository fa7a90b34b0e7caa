// A reader's first visit in Firefox, driven over WebDriver BiDi; see firefox_walk.py.
//   node firefox_walk.mjs PUPPETEER FIREFOX LINK
const [puppeteerAt, firefox, link] = process.argv.slice(2);
const { default: puppeteer } = await import(puppeteerAt);
const WITHIN = { timeout: 180_000 };
const BEGIN = "main button[name=skip]"; // as conftest.py
const FEED = "main[data-feed] article.card[id]";
const PAGES = ["/explore", "/fresh", "/you", "/interests/history", "/privacy", "/training", "/settings?switches=open", "/latency"];
const say = (words) => console.log(words);

const browser = await puppeteer.launch({ browser: "firefox", executablePath: firefox, headless: true, protocolTimeout: WITHIN.timeout });
const faults = [];
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => faults.push(`error of the page: ${error.message}`));
  await page.goto(link);
  await page.waitForSelector(BEGIN, WITHIN);
  const asked = await page.evaluate(() => performance.now());
  await page.click(BEGIN);
  await page.waitForSelector(FEED, WITHIN);
  const stood = await page.evaluate(() => performance.now());
  say(`first visit: ${stood.toFixed(0)} ms to the feed, of them ${(stood - asked).toFixed(0)} after its question`);
  await page.click("article.card[id] .headline a");
  await page.waitForSelector(".story .prose p", WITHIN);
  await page.evaluate(() => history.back());
  await page.waitForSelector("article.card.read", WITHIN);
  await page.reload();
  await page.waitForSelector("article.card.read", WITHIN);
  say(`reload: ${(await page.evaluate(() => performance.now())).toFixed(0)} ms to the kept feed, the story read`);
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
  const has = await page.evaluate(async () => ({
    "cross-origin isolation": crossOriginIsolated,
    "an installed build": (await navigator.serviceWorker.getRegistration("/reader/")) !== undefined,
    "storage that is promised to last": await navigator.storage.persisted(),
  }));
  for (const [what, there] of Object.entries(has)) say(`${what}: ${there ? "yes" : "no"}`);
  for (const path of PAGES) {
    await page.evaluate((next) => {
      document.querySelector("main").dataset.left = "yes";
      location.hash = next;
    }, path);
    await page.waitForSelector("main:not([data-left]) h1", WITHIN);
    const bad = await page.evaluate(() => document.querySelector("main .notice.bad")?.textContent ?? "");
    if (bad) faults.push(`${path}: ${bad}`);
    say(`${path}: ${await page.title()}`);
  }
} finally {
  await browser.close();
}
for (const fault of faults) say(fault);
process.exit(faults.length ? 1 : 0);
