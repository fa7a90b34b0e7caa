// @ts-check
// What a page said after a form belongs to that one load: taken out of the address, a reload does not say it again. That
// everything is erased concerns the other tabs, too.

export function sayOnce() {
  const address = new URL(location.href);
  const said = address.searchParams.get("said");
  leaveErased(said === "erased");
  if (said === null) return;
  address.searchParams.delete("said");
  history.replaceState(history.state, "", address);
}

/** No tab goes on showing what was erased. @param {boolean} here whether it was done in this one */
function leaveErased(here) {
  const tabs = new BroadcastChannel("ownfeed-erased");
  if (here) tabs.postMessage(null);
  tabs.onmessage = () => location.replace("/welcome");
}
