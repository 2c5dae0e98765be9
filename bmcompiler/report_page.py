"""The frame of the HTML report: style and the script that sorts tables."""

PAGE_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root { color-scheme: light dark; --line: #d5dae1; --soft: #f4f6f8; --dim: #5d6876; --text: #1c232b; --page: #fff;
  --w: #7a5cc2; --a: #2c7fb8; --s: #e08a2e; --warn: #a33a1f; }
@media (prefers-color-scheme: dark) {
  :root { --line: #39424d; --soft: #20262d; --dim: #98a4b3; --text: #e3e8ee; --page: #161b20;
    --w: #a58ae6; --a: #5aa9dd; --s: #f0a95a; --warn: #f08a6c; } }
body { font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; color: var(--text); background: var(--page);
  margin: 0 auto; padding: 1.5rem; max-width: 1500px; }
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
th:hover, th:focus { color: var(--text); }
th[data-dir="1"]::after { content: " \\25B2"; }
th[data-dir="-1"]::after { content: " \\25BC"; }
th.n, td.n { text-align: right; }
td.t { white-space: normal; overflow-wrap: anywhere; }
table.layers td.t { max-width: 22rem; }
tbody tr:hover { background: var(--soft); }
td.bar { min-width: 14rem; }
.stack { display: flex; height: .8rem; width: 100%; }
.stack i { display: block; min-width: 1px; }
.w { background: var(--w); } .a { background: var(--a); } .s { background: var(--s); }
.legend span { margin-left: 1rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; vertical-align: -.1rem; }
.cpu { color: var(--warn); font-weight: 600; }
</style>
</head>
<body>
"""

PAGE_TAIL = """
<script>
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
