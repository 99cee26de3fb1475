// What the page does beyond htmx: dialogs, and reloading after signing out.
"use strict";

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-opens]");
  if (opener) document.getElementById(opener.dataset.opens).showModal();
  if (event.target.closest("[data-closes]")) event.target.closest("dialog").close();
});

// A refusal is told in the notice of the page, which a dialog would hide.
document.addEventListener("htmx:after:request", (event) => {
  event.target.closest?.("dialog")?.close();
  if (event.target.matches?.("[data-reload]")) window.location.reload();
  if (event.target.matches?.("[data-once]") && event.detail.ctx.response.status < 400) cleared(event.target);
});

// What was sent stands in the form no more, so that nobody sends it twice, nor an earlier refusal.
function cleared(form) {
  document.getElementById("notice").replaceChildren();
  form.reset();
}

// The chat: Enter sends, Shift+Enter is a new line; what was sent leaves the field.
document.addEventListener("keydown", (event) => {
  if (!event.target.matches("[data-enter]") || event.key !== "Enter") return;
  if (event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});
document.addEventListener("htmx:before:request", (event) => {
  if (event.target.matches?.("[data-clears]")) cleared(event.target);
});
