// @ts-check
// Tables marked with data-sort can be sorted by any named column; a cell's data-value takes precedence over its text.

export function sortTables() {
  for (const table of document.querySelectorAll("table[data-sort]")) {
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head, column) => {
      const name = head.textContent?.trim() ?? "";
      if (name === "" || head.querySelector(".hidden")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sorter";
      button.textContent = name;
      button.addEventListener("click", () => sortBy(table, heads, head, column));
      head.replaceChildren(button);
    });
  }
}

/**
 * @param {Element} table
 * @param {Element[]} heads
 * @param {Element} head
 * @param {number} column
 */
function sortBy(table, heads, head, column) {
  const body = table.querySelector("tbody");
  if (!body) return;
  const falling = head.getAttribute("aria-sort") === "ascending";
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const rows = [...body.rows].map((row) => ({ row, key: keyOf(row.cells[column]) }));
  rows.sort((a, b) => (falling ? -1 : 1) * compare(a.key, b.key));
  body.append(...rows.map(({ row }) => row));
}

/**
 * @param {HTMLTableCellElement | undefined} cell
 * @returns {string | number}
 */
function keyOf(cell) {
  const text = cell?.dataset.value ?? cell?.textContent?.trim() ?? "";
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return cell?.classList.contains("num") || cell?.dataset.value !== undefined ? (Number.isNaN(number) ? -Infinity : number) : text;
}

/**
 * @param {string | number} a
 * @param {string | number} b
 */
function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
}
