// Draws the charts as SVG, again whenever the width changes; shows the values under the pointer.
// Names from outside are set as text, never as markup.
#include "observe/report_html.h"

namespace tandem {

const char* const report_script = R"js(
(() => {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const shape = (parent, name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    return parent.appendChild(made);
  };
  const element = (parent, name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return parent.appendChild(made);
  };
  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e9) return +(value / 1e9).toPrecision(4) + "G";
    if (size >= 1e6) return +(value / 1e6).toPrecision(4) + "M";
    if (size >= 1e4) return +(value / 1e3).toPrecision(4) + "k";
    if (size !== 0 && size < 1e-3) return value.toExponential(1).replace(".0e", "e");
    return String(+value.toPrecision(4));
  };
  // Round figures that cover a range: 1, 2 or 5 times a power of ten apart.
  const round_ticks = (low, high, count) => {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(i * step);
    return ticks;
  };
  const log_ticks = (low, high) => {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
      for (const factor of [1, 2, 5]) {
        const tick = factor * 10 ** power;
        if (tick >= low && tick <= high) ticks.push(tick);
      }
    return ticks.length > 8 ? ticks.filter((tick) => /^1/.test(tick.toExponential())) : ticks;
  };
  const nearest = (xs, x) => {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      xs[middle] < x ? (low = middle) : (high = middle);
    }
    return x - xs[low] < xs[high] - x ? low : high;
  };

  const draw = (figure, chart) => {
    const plot = figure.querySelector(".plot"), tip = figure.querySelector(".tip");
    plot.textContent = "";
    const width = plot.clientWidth, height = plot.clientHeight;
    const left = 52, right = 10, top = 10, bottom = 26;
    const ys = chart.lines.flatMap((line) => line.y).filter((y) => y !== null);
    const xs = chart.lines.flatMap((line) => line.x);
    const reduce = (list, pick) => list.reduce((a, b) => pick(a, b));
    const x_low = reduce(xs, Math.min);
    const x_high = Math.max(reduce(xs, Math.max), x_low + 1e-9);
    let low = reduce(ys, Math.min), high = reduce(ys, Math.max);
    const log = chart.log && low > 0;
    if (!log) {
      if (chart.fromZero) low = Math.min(0, low);
      if (chart.unit.startsWith("%") && chart.fromZero && high > 50) high = Math.max(100, high);
      if (high === low) { high += Math.abs(high) * .1 || 1; if (!chart.fromZero) low -= Math.abs(low) * .1 || 1; }
      const room = (high - low) * .04;
      if (!(chart.fromZero && low === 0)) low -= room;
      if (high !== 100) high += room;
    } else if (high === low) { high *= 1.1; low /= 1.1; }
    const scale = log ? Math.log : (value) => value;
    const x_of = (x) => left + (x - x_low) / (x_high - x_low) * (width - left - right);
    const y_of = (y) => top + (scale(high) - scale(y)) / (scale(high) - scale(low)) * (height - top - bottom);

    const svg = shape(plot, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    svg.setAttribute("aria-label", chart.title);
    for (const tick of log ? log_ticks(low, high) : round_ticks(low, high, 5)) {
      const y = y_of(tick);
      shape(svg, "line", { x1: left, x2: width - right, y1: y, y2: y, stroke: "var(--grid)" });
      shape(svg, "text", { x: left - 7, y: y + 4, "text-anchor": "end" }).textContent = short(tick);
    }
    for (const tick of round_ticks(x_low, x_high, Math.max(2, Math.floor(width / 95)))) {
      const anchor = x_of(tick) > width - 25 ? "end" : "middle";
      shape(svg, "text", { x: x_of(tick), y: height - 9, "text-anchor": anchor }).textContent = short(tick);
    }
    shape(svg, "text", { x: left - 7, y: height - 9, "text-anchor": "end" }).textContent = chart.x === "step" ? "step" : "min";
    shape(svg, "line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: "var(--rule)" });
    for (const line of chart.lines) {
      let path = "", pen = "M";
      line.x.forEach((x, i) => {
        if (line.y[i] === null || (log && line.y[i] <= 0)) { pen = "M"; return; }
        path += pen + x_of(x).toFixed(1) + " " + y_of(line.y[i]).toFixed(1);
        pen = "L";
      });
      shape(svg, "path", { d: path, fill: "none", stroke: line.colour, "stroke-linejoin": "round",
        "stroke-width": line.faint ? 1 : 1.8, opacity: line.faint ? .38 : 1 });
      if (line.dots && line.x.length <= 80)
        line.x.forEach((x, i) => line.y[i] === null ||
          shape(svg, "circle", { cx: x_of(x), cy: y_of(line.y[i]), r: 2.6, fill: line.colour }));
    }

    const rule = shape(svg, "line", { y1: top, y2: height - bottom, stroke: "var(--quiet)", "stroke-dasharray": "3 3", visibility: "hidden" });
    const marks = chart.lines.map((line) => shape(svg, "circle", { r: 3.6, fill: line.colour, stroke: "var(--card)", visibility: "hidden" }));
    const hide = () => {
      tip.hidden = true;
      for (const mark of [rule, ...marks]) mark.setAttribute("visibility", "hidden");
    };
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = x_low + (event.clientX - box.left - left) / (width - left - right) * (x_high - x_low);
      const near = chart.lines.map((line) => nearest(line.x, x));
      const best = chart.lines.map((line, i) => line.x[near[i]])
        .reduce((a, b) => Math.abs(a - x) <= Math.abs(b - x) ? a : b);
      tip.textContent = "";
      element(tip, "div", (chart.x === "step" ? "step " : "") + short_x(chart, best));
      rule.setAttribute("x1", x_of(best));
      rule.setAttribute("x2", x_of(best));
      rule.setAttribute("visibility", "visible");
      chart.lines.forEach((line, i) => {
        const y = line.y[near[i]], at = line.x[near[i]];
        const far = Math.abs(x_of(at) - x_of(best)) > 12;
        marks[i].setAttribute("visibility", y === null || far ? "hidden" : "visible");
        if (y === null) return;
        marks[i].setAttribute("cx", x_of(at));
        marks[i].setAttribute("cy", y_of(y));
        const row = element(tip, "div", line.name + "  " + String(+y.toPrecision(5)) +
          (chart.unit ? " " + chart.unit.split(" ")[0] : "") + (far ? "  (" + short_x(chart, at) + ")" : ""));
        row.style.color = line.colour;
      });
      tip.hidden = false;
      const place = x_of(best) + 14, most = figure.clientWidth - tip.offsetWidth - 8;
      tip.style.left = (place + 14 > most ? Math.max(4, x_of(best) - tip.offsetWidth + 2) : place + 14) + "px";
      tip.style.top = "44px";
    });
  };
  const short_x = (chart, x) => chart.x === "step" ? String(x) : x.toFixed(1) + " min";

  for (const figure of document.querySelectorAll("figure.chart")) {
    const chart = charts[+figure.dataset.chart];
    const caption = figure.querySelector("figcaption");
    const plot = element(figure, "div", undefined, "plot");
    const legend = element(figure, "div", undefined, "legend");
    element(figure, "div", undefined, "tip").hidden = true;
    let colour = 0;
    for (const line of chart.lines) {
      line.colour = `var(--c${colour % 8})`;
      if (!line.faint) ++colour;
      if (line.faint || (chart.lines.length === 1 && line.name === "train")) continue;
      const entry = element(legend, "span");
      element(entry, "i").style.background = line.colour;
      entry.append(line.name);
    }
    const positive = chart.lines.every((line) => line.y.every((y) => y === null || y > 0));
    if (positive && !chart.unit.startsWith("%")) {
      const button = element(caption, "button", "log");
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        chart.log = !chart.log;
        button.setAttribute("aria-pressed", String(chart.log));
        draw(figure, chart);
      });
    }
    let width = 0;
    new ResizeObserver(() => {
      if (plot.clientWidth === width) return;
      width = plot.clientWidth;
      draw(figure, chart);
    }).observe(plot);
  }
})();
)js";

}  // namespace tandem
