// @ts-check
// A page's message after a form belongs to a single load: it is removed from the address, so that a reload doesn't
// repeat it. After an erase, other tabs are notified.

export function sayOnce() {
  const address = new URL(location.href);
  const said = address.searchParams.get("said");
  leaveErased(said === "erased");
  if (said === null) return;
  address.searchParams.delete("said");
  history.replaceState(history.state, "", address);
}

/** Other tabs leave pages that show erased data. @param {boolean} here whether the erase was done in this tab */
function leaveErased(here) {
  const tabs = new BroadcastChannel("ownfeed-erased");
  if (here) tabs.postMessage(null);
  tabs.onmessage = () => location.replace("/welcome");
}
