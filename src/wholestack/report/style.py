"""How the page looks, and the one script on it.

Plots are inline SVG drawn with the names of colours below, so they follow the light or dark scheme of the reader.
Blue and orange carry prediction and actual value: they stay apart for colour-blind readers, and shape tells them
apart as well. The script opens folded tables before printing and closes them again; nothing else depends on it.
"""

COLOURS = (
    "ink",
    "muted",
    "grid",
    "surface",
    "predicted",
    "actual",
    "trial",
    "random",
    "ok",
    "warn",
    "fail",
    "unknown",
    "phase-1",
    "phase-2",
    "phase-3",
    "phase-4",
    "phase-5",
    "phase-6",
    "phase-7",
    "phase-8",
)
"""Names that a plot may use; each is a custom property ``--name`` in the style sheet."""

STYLE = """
:root { color-scheme: light dark;
  --page: #f5f6f8; --surface: #ffffff; --ink: #1c2127; --muted: #5b6570; --grid: #e4e7eb; --line: #d5d9df;
  --predicted: #2458b3; --actual: #c2410c; --trial: #8390a0; --random: #8a5cc2;
  --ok: #1b7a3d; --warn: #8f5f00; --fail: #b42318; --unknown: #6b3fa0;
  --ok-soft: #e5f4ea; --warn-soft: #fdf3dc; --fail-soft: #fdeae8; --unknown-soft: #f0e9f9; --open-soft: #eceff3;
  --phase-1: #7d8896; --phase-2: #5aa3a3; --phase-3: #9bbf6b; --phase-4: #3b6fc4;
  --phase-5: #a889d6; --phase-6: #e0a33c; --phase-7: #cf5a2a; --phase-8: #b0577f; }
@media screen and (prefers-color-scheme: dark) { :root {
  --page: #0f1216; --surface: #171b21; --ink: #e4e8ed; --muted: #99a4b0; --grid: #2a3038; --line: #343b45;
  --predicted: #82b1ff; --actual: #ff9a62; --trial: #78859a; --random: #bb9af0;
  --ok: #5cc985; --warn: #e5b454; --fail: #ff8278; --unknown: #c3a1f2;
  --ok-soft: #14291c; --warn-soft: #2e2611; --fail-soft: #361a18; --unknown-soft: #271d38; --open-soft: #232931; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; }
.layout { max-width: 1180px; margin: 0 auto; padding: 24px 20px; display: grid; gap: 28px;
  grid-template-columns: 190px minmax(0, 1fr); }
nav { position: sticky; top: 20px; align-self: start; font-size: 13.5px; line-height: 1.4; }
nav ol { list-style: none; margin: 0; padding: 0; border-left: 1px solid var(--line); }
nav li { margin: 0; } nav a { display: block; padding: 5px 0 5px 14px; color: var(--muted); text-decoration: none; }
nav a:hover, nav a:focus-visible { color: var(--ink); text-decoration: underline; }
main { min-width: 0; }
header { padding: 2px 0 14px; } header h1 { font-size: 15px; font-weight: 600; margin: 0; }
header p { max-width: none; margin: 2px 0 0; color: var(--muted); font-size: 14px; }
section { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 22px 26px 24px;
  margin: 0 0 20px; scroll-margin-top: 14px; }
h2 { font-size: 21px; line-height: 1.25; margin: 0 0 12px; font-weight: 650; letter-spacing: -0.01em; }
h3 { font-size: 16px; line-height: 1.35; margin: 26px 0 8px; font-weight: 650; }
p { margin: 0 0 12px; max-width: 76ch; } ul { margin: 0 0 12px; padding-left: 20px; max-width: 76ch; }
li { margin: 2px 0; } a { color: var(--predicted); }
code, pre { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: 10px 12px; margin: 0 0 12px;
  white-space: pre-wrap; }
.verdict { border-left: 5px solid var(--muted); padding: 2px 0 2px 16px; margin: 0 0 16px; max-width: none; }
.verdict p { font-size: 21px; line-height: 1.38; font-weight: 550; margin: 0; max-width: 62ch;
  letter-spacing: -0.006em; }
.verdict p + p, .verdict ul { font-size: 15px; line-height: 1.5; font-weight: 400; margin: 6px 0 0;
  letter-spacing: 0; }
.verdict.ok { border-color: var(--ok); } .verdict.warn { border-color: var(--warn); }
.verdict.fail { border-color: var(--fail); } .verdict.unknown { border-color: var(--unknown); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 14px 20px; margin: 18px 0 8px;
  padding: 0; } .tiles div { min-width: 0; border-top: 1px solid var(--line); padding-top: 8px; }
.tiles dt { font-size: 13px; color: var(--muted); line-height: 1.35; } .tiles dd { margin: 2px 0 0; font-size: 18px;
  font-weight: 600; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tiles dd small { display: block; font-size: 12.5px; font-weight: 400; color: var(--muted); line-height: 1.35; }
.badge { display: inline-flex; align-items: baseline; gap: 5px; border-radius: 999px; padding: 1px 9px 1px 7px;
  font-size: 12.5px; font-weight: 600; white-space: nowrap; background: var(--open-soft); color: var(--muted); }
.badge.ok { background: var(--ok-soft); color: var(--ok); } .badge.warn { background: var(--warn-soft);
  color: var(--warn); } .badge.fail { background: var(--fail-soft); color: var(--fail); }
.badge.unknown { background: var(--unknown-soft); color: var(--unknown); } .glyph { font-size: 11px; }
.plot { margin: 18px 0 22px; }
.plot:last-child, .plot details:last-child, section > *:last-child { margin-bottom: 0; } .picture { overflow-x: auto; }
.picture svg { display: block; width: 100%; height: auto; min-width: 540px; max-width: 860px; }
.picture svg.small { min-width: 0; max-width: 560px; }
.picture.grid, .grid { display: grid; gap: 14px 18px; grid-template-columns: repeat(auto-fill, minmax(236px, 1fr)); }
.grid svg { min-width: 0; max-width: 420px; }
svg text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
figcaption { color: var(--muted); font-size: 14px; line-height: 1.5; max-width: 80ch; margin: 8px 0 10px; }
.scroll { overflow-x: auto; margin: 0 0 12px; } .scroll:focus-visible { outline: 2px solid var(--predicted); }
table { border-collapse: collapse; font-size: 13.5px; line-height: 1.45; width: 100%; overflow-wrap: normal; }
caption { text-align: left; color: var(--muted); font-size: 13px; padding: 0 0 6px; caption-side: top; }
th, td { text-align: left; vertical-align: top; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--grid);
  min-width: 3.5em; } td { overflow-wrap: break-word; max-width: 44em; }
th { font-weight: 600; font-size: 12.5px; color: var(--muted); border-bottom-color: var(--line);
  vertical-align: bottom; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.wide, .wide { min-width: 18em; }
details { margin: 0 0 8px; } summary { cursor: pointer; color: var(--predicted); font-size: 14px; padding: 3px 0; }
details[open] > summary { margin-bottom: 8px; }
.absent { color: var(--muted); font-style: italic; } .small-text { font-size: 13.5px; color: var(--muted); }
.notice { background: var(--unknown-soft); border-radius: 8px; padding: 10px 14px; font-size: 14px; max-width: none; }
.case { border-left: 3px solid var(--muted); padding: 0 0 0 14px; margin: 14px 0; }
.case.fail { border-color: var(--fail); } .case.unknown { border-color: var(--unknown); }
.case h4 { margin: 0 0 4px; font-size: 15px; } .case p { margin: 0 0 4px; font-size: 14px; }
.case ul { font-size: 14px; margin-bottom: 6px; }
footer { max-width: 1180px; margin: 0 auto; padding: 0 20px 30px; color: var(--muted); font-size: 13px; }
@media (max-width: 900px) { .layout { grid-template-columns: minmax(0, 1fr); gap: 8px; padding: 14px 12px; }
  table.many { min-width: 640px; }
  nav { position: static; } nav ol { border: 0; display: flex; flex-wrap: wrap; gap: 0 14px; }
  nav a { padding: 3px 0; } section { padding: 16px 15px 18px; border-radius: 8px; } .verdict p { font-size: 18px; } }
@media print { body { background: #fff; font-size: 11pt; } nav { display: none; } .layout { display: block;
  padding: 0; }
  section { border: 0; padding: 0 0 12px; } figure, tr, .tiles { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .scroll, .picture { overflow: visible; } .picture svg { min-width: 0; } }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
"""

SCRIPT = """
(function () {
  var closed = [];
  addEventListener("beforeprint", function () {
    closed = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    closed.forEach(function (each) { each.open = true; });
  });
  addEventListener("afterprint", function () { closed.forEach(function (each) { each.open = false; }); });
})();
"""
