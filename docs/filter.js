// Cells know their headings, for narrow screens (site.css); above every long table is a field that shows only the rows
// with the words typed.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const rows = [...table.tBodies[0].rows], heads = table.tHead.rows[0].cells;
    if (heads.length > 2) table.dataset.stacks = "";
    for (const row of rows)
      for (const cell of row.cells) cell.dataset.heading = heads[cell.cellIndex].textContent;
    if (rows.length < 20) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = `filter ${rows.length} rows`;
    field.style.cssText = "width: 100%; max-width: 24rem; padding: .4rem .6rem; margin-top: 1rem; font-size: .8rem";
    field.style.cssText += "; border: 1px solid currentColor; border-radius: 4px; color: inherit; background: none";
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every(word => text.includes(word));
      }
    });
    (table.closest(".md-typeset__scrollwrap") ?? table).before(field);
  }
});
