// Search as one types, copy commands, filter lists, wait for what is not ready: every page works without this file.
"use strict";

function prepare(root) {
  for (const button of navigator.clipboard ? root.querySelectorAll("[data-copy]") : []) {
    button.hidden = false;
    const label = button.firstChild;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        label.data = "Copied";
      } catch {
        label.data = "Not copied";
      }
      setTimeout(() => { label.data = "Copy"; }, 1500);
    });
  }

  const filter = root.querySelector("[data-filter]");
  if (!filter) return;
  filter.hidden = false;
  const rows = [...root.querySelectorAll("[data-row]")].map((row) => [row, row.textContent.toLowerCase()]);
  const count = filter.querySelector("[data-filter-count]");
  filter.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = words.length ? `${shown} of ${rows.length} shown` : "";
  });
}

prepare(document);

const results = document.querySelector("[data-results]");
const field = document.querySelector("[data-search]");
if (results && field) {
  let waiting = 0;
  let last = 0;
  const ask = async () => {
    const number = ++last;
    const address = new URL(field.form.action);
    address.searchParams.set("q", field.value);
    history.replaceState(null, "", address);
    address.searchParams.set("part", "results");
    let text;
    try {
      const answer = await fetch(address, { credentials: "same-origin" });
      if (!answer.ok) { field.form.submit(); return; }
      text = await answer.text();
    } catch {
      const told = document.createElement("p");
      told.className = "note-line";
      told.textContent = "The server does not answer, so these are not the results. Was it ended?";
      if (number === last) results.replaceChildren(told);
      return;
    }
    if (number !== last) return;
    results.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
    clearTimeout(waiting);
    if (results.querySelector("[data-waiting]")) waiting = setTimeout(ask, 400);
  };
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(ask, 120); });
  if (results.querySelector("[data-waiting]")) waiting = setTimeout(ask, 400);
  if (!field.value) field.focus();
}

// Only the parts that wait are replaced, and none that holds the focus: what was typed and opened stays.
const main = document.querySelector("main");
const renew = async () => {
  let next;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) { location.reload(); return; }
    next = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    setTimeout(renew, 2000);
    return;
  }
  const parts = new Set([...main.querySelectorAll("[data-waiting]")].map((one) => one.closest("section") || main));
  if (parts.has(main)) parts.add(document.querySelector(".top nav"));
  const focused = document.activeElement;
  for (const part of parts) {
    const label = part.getAttribute("aria-labelledby");
    const other = next.querySelector(label ? `[aria-labelledby="${label}"]` : part === main ? "main" : ".top nav");
    if (!other) { location.reload(); return; }
    if (part !== focused && part.contains(focused)) continue;
    part.replaceChildren(...other.childNodes);
    prepare(part);
  }
  document.title = next.title;
  if (main.querySelector("[data-waiting]")) setTimeout(renew, 1000);
};
if (main && !results && main.querySelector("[data-waiting]")) setTimeout(renew, 1000);
