// @ts-check
// What a page said after a form belongs to that one load: taken out of the address, a reload does not say it again.

export function sayOnce() {
  const address = new URL(location.href);
  if (!address.searchParams.has("said")) return;
  address.searchParams.delete("said");
  history.replaceState(history.state, "", address);
}
