"""The frame of the HTML report: style and the script that sorts tables."""

PAGE_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root { color-scheme: light dark; --line: #d5dae1; --soft: #f4f6f8; --dim: #5d6876; --text: #1c232b; --page: #fff;
  --w: #7a5cc2; --a: #2c7fb8; --s: #e08a2e; --f: #2a9d6f; --x: #9aa5b1; --warn: #a33a1f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #39424d; --soft: #20262d; --dim: #98a4b3; --text: #e3e8ee; --page: #161b20;
    --w: #a58ae6; --a: #5aa9dd; --s: #f0a95a; --f: #5cc79b; --x: #77828f; --warn: #f08a6c; } }
body { font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; color: var(--text); background: var(--page);
  margin: 0 auto; padding: 1.5rem; max-width: 1760px; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; overflow-wrap: anywhere; }
h1 small { color: var(--dim); font-weight: normal; font-size: 1rem; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .6rem; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin-bottom: 1.2rem; }
.tiles div { background: var(--soft); border-radius: 6px; padding: .6rem .9rem; min-width: 9rem; }
.tiles span, .tiles i, .small, .legend { color: var(--dim); font-size: .85rem; font-style: normal; }
.tiles span, .tiles i { display: block; }
.tiles b { font-size: 1.3rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { color: var(--dim); font-weight: 600; cursor: pointer; user-select: none; }
table:not(.layers) th { white-space: normal; vertical-align: bottom; }
th:hover, th:focus { color: var(--text); }
th[data-dir="1"]::after { content: " \\25B2"; }
th[data-dir="-1"]::after { content: " \\25BC"; }
th.n, td.n { text-align: right; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; max-width: 26rem; }
th, td { vertical-align: top; }
tbody tr:hover { background: var(--soft); }
td.bar { min-width: 10rem; vertical-align: middle; }
.stack { display: flex; height: .8rem; width: 100%; }
.stack i { display: block; min-width: 1px; }
.w { background: var(--w); } .a { background: var(--a); } .s { background: var(--s); }
.f { background: var(--f); } .x { background: var(--x); } .c { background: var(--a); }
svg { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--dim);
  display: block; max-width: 100%; height: auto; }
svg .w { fill: var(--w); } svg .a, svg .c { fill: var(--a); } svg .s { fill: var(--s); } svg .x { fill: var(--x); }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .roof { stroke: var(--text); stroke-width: 2; }
svg .strong { fill: var(--text); } svg .band { fill: var(--soft); }
svg .live { stroke: var(--page); stroke-width: .5; } svg .live:hover { fill: var(--warn); }
svg .dot { fill-opacity: .55; stroke: var(--page); } svg .dot:hover { fill: var(--warn); fill-opacity: 1; }
.net { background: var(--warn); } svg .net { fill: var(--warn); stroke: var(--page); }
.groups { display: flex; flex-wrap: wrap; gap: .35rem; align-items: flex-start; }
.group { border: 1px solid var(--line); border-radius: 6px; padding: .15rem .35rem; max-width: 100%; }
.group.several { border-color: var(--dim); background: var(--soft); }
.group span { color: var(--dim); font-size: .75rem; margin-right: .25rem; }
.chip { display: inline-block; font-style: normal; font-size: .75rem; padding: 0 .3rem; margin: .1rem;
  border-radius: 4px; max-width: 10rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  vertical-align: bottom; background: color-mix(in srgb, var(--a) var(--shade), transparent); }
.meter { height: 3px; background: var(--line); margin-top: .15rem; }
.meter i { display: block; height: 3px; background: var(--a); }
.legend span { margin-left: 1rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; vertical-align: -.1rem; }
.cpu { color: var(--warn); font-weight: 600; }
@media (max-width: 600px) {
  body { padding: 1rem; }
  .tiles { display: grid; grid-template-columns: 1fr 1fr; } .tiles div { min-width: 0; overflow-wrap: anywhere; }
  svg { font-size: 24px; }
  thead { display: none; } table, tbody { display: block; }
  tbody tr { display: block; border-bottom: 2px solid var(--line); padding: .4rem 0; }
  td, td.n, td.bar { display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0; border: 0;
    text-align: right; white-space: normal; overflow-wrap: anywhere; min-width: 0; }
  td::before { content: attr(data-h); color: var(--dim); text-align: left; flex: none; max-width: 45%; }
  td:empty { display: none; } td.long { max-width: none; min-width: 0; } td .stack { max-width: 50%; }
  td.bar:has(.stack:empty) { display: none; }
  .group, .chip { box-sizing: border-box; } .chip { max-width: calc(100% - .2rem); }
}
</style>
</head>
<body>
"""

PAGE_TAIL = """
<script>
for (const table of document.querySelectorAll("table"))
  for (const row of table.tBodies[0].rows)
    for (const cell of row.cells) cell.dataset.h = table.tHead.rows[0].cells[cell.cellIndex].textContent;
for (const th of document.querySelectorAll("th")) {
  const sort = () => {
    const body = th.closest("table").tBodies[0], column = th.cellIndex;
    const first = th.classList.contains("t") ? 1 : -1;
    const dir = th.dataset.dir ? -th.dataset.dir : first;
    for (const other of th.parentNode.cells) delete other.dataset.dir;
    th.dataset.dir = dir;
    const value = row => row.cells[column].dataset.v;
    const order = (a, b) => {
      const x = value(a), y = value(b), n = x - y;
      return dir * (isNaN(n) ? x.localeCompare(y, undefined, { numeric: true }) : n);
    };
    body.append(...[...body.rows].sort(order));
  };
  th.addEventListener("click", sort);
  th.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
}
</script>
</body>
</html>
"""
