"use strict";

// Show the data-tip of an element next to the pointer.
const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const on = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
  tip.hidden = on === null;
  if (on === null) return;
  tip.textContent = on.dataset.tip;
  const right = window.scrollX + document.documentElement.clientWidth - tip.offsetWidth - 8;
  const below = event.clientY + 18 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(8, Math.min(event.pageX + 14, right))}px`;
  tip.style.top = `${below ? event.pageY + 18 : event.pageY - tip.offsetHeight - 10}px`;
});

// Show the same when the keyboard moves the focus from dot to dot.
document.addEventListener("focusin", (event) => {
  const on = event.target instanceof SVGElement ? event.target.closest("[data-tip]") : null;
  tip.hidden = on === null;
  if (on === null) return;
  tip.textContent = on.dataset.tip;
  const box = on.getBoundingClientRect();
  tip.style.left = `${window.scrollX + Math.max(8, Math.min(box.right + 10, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${window.scrollY + box.bottom + 8}px`;
});

// The timeline and the memory below it are as wide as the zoom says, and move together.
const pans = [...document.querySelectorAll(".pan")];
for (const zoom of document.querySelectorAll(".zoom-by")) {
  zoom.addEventListener("input", () => {
    const middle = pans.map((pan) => (pan.scrollLeft + pan.clientWidth / 2) / pan.scrollWidth);
    pans.forEach((pan, i) => {
      pan.firstElementChild.style.setProperty("--zoom", zoom.value);
      pan.scrollLeft = middle[i] * pan.scrollWidth - pan.clientWidth / 2;
    });
  });
}
for (const pan of pans) {
  pan.addEventListener("scroll", () => pans.forEach((other) => { other.scrollLeft = pan.scrollLeft; }));
}

// A click on a column's title sorts by it: numbers from the largest down first, words from A on; again turns it around.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const number = head.classList.contains("num");
    const first = number ? "descending" : "ascending";
    const other = number ? "ascending" : "descending";
    const order = head.ariaSort === first ? other : first;
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    head.ariaSort = order;
    const value = (row) => number ? Number(row.cells[column].dataset.value) : row.cells[column].textContent;
    const compare = (a, b) => number ? value(a) - value(b) : value(a).localeCompare(value(b));
    const rows = [...table.tBodies[0].rows].sort((a, b) => order === "ascending" ? compare(a, b) : compare(b, a));
    table.tBodies[0].append(...rows);
  }));
}
