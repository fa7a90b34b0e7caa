// @ts-check
// Reactions and stances without leaving the page: shown at once, taken back if the device refuses.

/** What excludes what. @type {Record<string, string>} */
const OPPOSITE = { like: "less", less: "like" };

/** @param {ParentNode} root */
export function enhanceForms(root) {
  for (const form of root.querySelectorAll("form[data-react]")) {
    if (form instanceof HTMLFormElement) {
      form.addEventListener("submit", (event) => void react(event, form));
    }
  }
}

/**
 * @param {SubmitEvent} event
 * @param {HTMLFormElement} form
 */
async function react(event, form) {
  const button = event.submitter;
  if (!(button instanceof HTMLButtonElement)) return;
  event.preventDefault();
  const before = pressed(form);
  show(form, button);
  const data = new URLSearchParams();
  for (const [name, value] of new FormData(form, button)) data.append(name, String(value));
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      body: data,
      headers: { accept: "application/json" },
    });
    if (!answer.ok) throw new Error(`the device answered ${answer.status}`);
  } catch {
    restore(form, before);
    say(form, "The device did not take this. Is it still running?");
  }
}

/** @param {HTMLFormElement} form */
function buttons(form) {
  return [...form.querySelectorAll("button[name=kind]")].filter((one) => one instanceof HTMLButtonElement);
}

/** @param {HTMLFormElement} form */
function pressed(form) {
  return buttons(form).map((one) => one.getAttribute("aria-pressed") === "true");
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLButtonElement} chosen
 */
function show(form, chosen) {
  const on = chosen.getAttribute("aria-pressed") !== "true";
  for (const one of buttons(form)) {
    if (one === chosen) one.setAttribute("aria-pressed", String(on));
    else if (on && one.value === OPPOSITE[chosen.value]) one.setAttribute("aria-pressed", "false");
  }
  mark(form);
}

/**
 * @param {HTMLFormElement} form
 * @param {boolean[]} states
 */
function restore(form, states) {
  buttons(form).forEach((one, at) => one.setAttribute("aria-pressed", String(states[at] ?? false)));
  mark(form);
}

/** @param {HTMLFormElement} form */
function mark(form) {
  const less = form.querySelector('button[value="less"][aria-pressed="true"]');
  form.closest(".card")?.classList.toggle("dismissed", less !== null);
}

/**
 * @param {HTMLFormElement} form
 * @param {string} words
 */
function say(form, words) {
  const line = form.querySelector("[role=alert]") ?? form.appendChild(document.createElement("p"));
  line.setAttribute("role", "alert");
  line.className = "soft";
  line.textContent = words;
}
