// Search as one types, copy commands, filter lists: every page works without this file.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
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

const filter = document.querySelector("[data-filter]");
if (filter) {
  filter.hidden = false;
  const rows = [...document.querySelectorAll("[data-row]")].map((row) => [row, row.textContent.toLowerCase()]);
  const count = filter.querySelector("[data-filter-count]");
  filter.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} of ${rows.length} rows`;
  });
}

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
