#include "observe/report_html.h"

namespace tandem {

const char* const report_style = R"css(
:root {
  --page: #f6f7f9; --card: #fff; --text: #1c2330; --quiet: #667085; --rule: #e3e6eb; --grid: #eceff3;
  --good: #12805c; --bad: #c92a2a; --busy: #1c64d1;
  --c0: #1c64d1; --c1: #e8590c; --c2: #12805c; --c3: #9c36b5; --c4: #c92a2a; --c5: #0b7285;
  --c6: #846358; --c7: #5f3dc4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12151b; --card: #1b2028; --text: #e4e8ef; --quiet: #98a2b3; --rule: #2c333f;
    --grid: #262d38; --good: #4bd3a0; --bad: #ff8787; --busy: #74a9ff;
    --c0: #74a9ff; --c1: #ffa94d; --c2: #4bd3a0; --c3: #da8fee; --c4: #ff8787; --c5: #4fc9dc;
    --c6: #c7a99f; --c7: #a99bff;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 24px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 32px 0 12px; }
h3 { font-size: 15px; margin: 0 0 8px; overflow-wrap: anywhere; }
.state { margin: 4px 0 16px; color: var(--quiet); overflow-wrap: anywhere; }
.state::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 50%;
  margin-right: 8px; background: var(--busy); }
.state.finished::before { background: var(--good); }
.state.failed::before, .state.gone::before { background: var(--bad); }
.state.stopped::before { background: var(--c1); }
.tiles { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); }
.tile, .chart, .sample, .wide, details.card { background: var(--card); border-radius: 10px;
  border: 1px solid var(--rule); }
.tile { padding: 12px 14px; }
.tile b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--quiet); font-size: 13px; }
.charts { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.charts + .wide, .wide + .charts { margin-top: 14px; }
.chart { margin: 0; padding: 12px 14px 8px; position: relative; min-width: 0; }
.chart figcaption { display: flex; align-items: baseline; gap: 8px; font-weight: 600; }
.chart figcaption span { color: var(--quiet); font-weight: 400; font-size: 13px; flex: 1; }
.chart button { font: inherit; font-size: 12px; padding: 1px 8px; border-radius: 6px; cursor: pointer;
  border: 1px solid var(--rule); background: transparent; color: var(--quiet); }
.chart button[aria-pressed=true] { color: var(--text); border-color: var(--quiet); }
.plot { height: 230px; }
.chart svg { display: block; width: 100%; height: 100%; touch-action: pan-y; }
.chart text { fill: var(--quiet); font-size: 11px; font-variant-numeric: tabular-nums; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12.5px; color: var(--quiet); }
.legend i { display: inline-block; width: 12px; height: 3px; border-radius: 2px; margin: 0 6px 3px 0; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--rule);
  border-radius: 8px; padding: 6px 9px; font-size: 12.5px; box-shadow: 0 4px 14px rgb(0 0 0 / .16);
  font-variant-numeric: tabular-nums; white-space: nowrap; z-index: 2; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 7px 14px; border-top: 1px solid var(--rule); vertical-align: top; }
tr:first-child th { border-top: 0; color: var(--quiet); font-weight: 500; font-size: 13px;
  white-space: nowrap; }
td:first-child { white-space: nowrap; }
.samples { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
.sample { padding: 14px; min-width: 0; }
.sample p { margin: 0 0 8px; overflow-wrap: anywhere; white-space: pre-line; }
.sample .step { color: var(--quiet); font-size: 13px; margin: 0 0 6px; }
.sample img { display: block; width: 100%; height: 130px; border-radius: 6px; margin-bottom: 8px; }
.sample audio { display: block; width: 100%; height: 38px; }
.take + .take { margin-top: 14px; padding-top: 12px; border-top: 1px solid var(--rule); }
summary { cursor: pointer; color: var(--quiet); margin-top: 10px; }
details.card { padding: 0 14px 12px; }
pre { overflow-x: auto; margin: 10px 0 0; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.note { color: var(--quiet); font-size: 13.5px; }
main { padding-bottom: 60px; }
@media (max-width: 520px) {
  header, main { padding-left: 12px; padding-right: 12px; }
  .tiles { grid-template-columns: repeat(2, 1fr); }
  .plot { height: 200px; }
}
@media print { .chart, .sample, .tile { break-inside: avoid; } }
)css";

}  // namespace tandem
