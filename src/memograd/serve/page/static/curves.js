// Curves of runs: one small plot a number, one line a run.
"use strict";

const LINES = ["#0f9488", "#c2632d", "#6d5bd0", "#b3487f", "#7a8a1f", "#2f7ab8", "#9a7b4f", "#777777"];

async function drawCurves(place) {
  const { runs, curves } = await (await fetch(place.dataset.curves)).json();
  const names = Object.keys(runs);
  const soft = getComputedStyle(document.body).getPropertyValue("--soft").trim();
  const line = getComputedStyle(document.body).getPropertyValue("--line").trim();
  if (names.length > 1) {
    const legend = document.createElement("p");
    legend.className = "run-names";
    names.forEach((name, at) => {
      const entry = document.createElement("span");
      entry.textContent = name;
      entry.style.setProperty("--run", LINES[at % LINES.length]);
      legend.append(entry);
    });
    place.append(legend);
  }
  for (const [key, title] of Object.entries(curves)) {
    const box = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = title;
    box.append(caption);
    place.append(box);
    const having = names.filter((name) => runs[name][key]);
    const data = uPlot.join(having.map((name) => [runs[name].step, runs[name][key]]));
    const latest = having.map((name) => `${name} ${runs[name][key].at(-1)}`).join(", ");
    const plot = document.createElement("div");
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", `${title}: ${latest}`);
    box.append(plot);
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const chart = new uPlot({
      width: plot.clientWidth,
      height: 170,
      legend: { show: false },
      cursor: { points: { size: 6 } },
      scales: { x: { time: false } },
      axes: [{ ...axis, size: 28 }, { ...axis, size: 52 }],
      series: [{}, ...having.map((name) => ({ label: name, stroke: LINES[names.indexOf(name) % LINES.length], width: 2, spanGaps: true, points: { show: data[0].length < 3 } }))],
    }, data, plot);
    new ResizeObserver(() => chart.setSize({ width: plot.clientWidth, height: 170 })).observe(plot);
  }
}

document.querySelectorAll("[data-curves]").forEach(drawCurves);
