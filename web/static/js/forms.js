// @ts-check
// Reactions and hiding without leaving the page: shown at once, undone if the device refuses.

import { announce, catchUp } from "./still.js";

/** Reactions that exclude each other. @type {Record<string, string>} */
const OPPOSITE = { like: "less", less: "like" };

/** Handles all forms with one listener, since forms come and go with a card's state. @param {Document} root */
export function enhanceForms(root) {
  root.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement)) return;
    if (form.matches("[data-react]")) void react(event, form);
    else if (form.matches("[data-undo]")) undo(event, form);
    else if (form.matches("[data-hide]")) void hide(event, form);
    else if (form.matches("[data-mark-all]")) nameAll(form);
  });
}

/** Adds the stories that were put below since the page was loaded. @param {HTMLFormElement} form */
function nameAll(form) {
  const field = form.querySelector('input[name="news"]');
  if (!(field instanceof HTMLInputElement)) return;
  const shown = [...document.querySelectorAll("main [data-story][id]")].map((story) => story.id.replace(/^n-/, ""));
  field.value = [...new Set([...field.value.split(" "), ...shown])].join(" ");
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
  try {
    await post(form, button);
  } catch {
    restore(form, before);
    say(form, "That could not be saved. Is Ownfeed still running?");
    return;
  }
  await catchUp();
}

/**
 * "Undo" presses the pressed button again.
 * @param {SubmitEvent} event
 * @param {HTMLFormElement} form
 */
function undo(event, form) {
  const button = form.closest("[data-story]")?.querySelector('form[data-react] button[value="less"]');
  if (!(button instanceof HTMLButtonElement)) return;
  event.preventDefault();
  button.focus({ preventScroll: true });
  button.click();
}

/**
 * @param {SubmitEvent} event
 * @param {HTMLFormElement} form
 */
async function hide(event, form) {
  const button = event.submitter;
  if (!(button instanceof HTMLButtonElement)) return;
  event.preventDefault();
  const story = form.closest("[data-story]");
  try {
    await post(form, button);
  } catch {
    announce("That could not be saved. Is Ownfeed still running?");
    return;
  }
  await catchUp({ hidden: button.value === "block" });
  const next = story?.querySelector(".veil button") ?? story?.querySelector("form[data-react] button");
  if (next instanceof HTMLElement) next.focus({ preventScroll: true });
}

/**
 * @param {HTMLFormElement} form
 * @param {HTMLButtonElement} button
 */
async function post(form, button) {
  const data = new URLSearchParams();
  for (const [name, value] of new FormData(form, button)) data.append(name, String(value));
  const answer = await fetch(form.action, { method: "POST", body: data, headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(`the device answered ${answer.status}`);
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
}

/**
 * @param {HTMLFormElement} form
 * @param {boolean[]} states
 */
function restore(form, states) {
  buttons(form).forEach((one, at) => one.setAttribute("aria-pressed", String(states[at] ?? false)));
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
