const ROWS = 30; // runs that are listed at once
const HEIGHT = 170; // of a chart, in pixels
const MARGIN = { top: 18, right: 8, bottom: 20, left: 60 };
const DOTS = 60; // runs up to which each has a dot

const { suites } = data;

// --- figures

const percent = (share) => { const tenths = nearest(share * 1000); return `${tenths % 10 ? (tenths / 10).toFixed(1) : tenths / 10}%`; };
const rateOf = (point) => (point.scored ? point.passed / point.scored : null);
const day = (point) => point.time.slice(0, 10);
const minute = (point) => `${day(point)} ${point.time.slice(11, 16)} UTC`;
function rateWords(point) {
  if (!point.scored) return "no test was scored";
  return `${percent(rateOf(point))} (${count(point.passed)} of ${count(point.scored)} tests, 95 % interval ${percent(point.low)} to ${percent(point.high)})`;
}

const CHANGES = [["agent", "A", "agent (model, prompt or command)"], ["question", "Q", "question"], ["grading", "G", "grading"]];
const changesOf = (point) => CHANGES.filter(([key]) => point[key]);
const changeWords = (point) => changesOf(point).map(([key, , word]) => `${word} of ${plural(point[key], "test")} changed`);

// --- charts

const CHARTS = [
  { title: "Pass rate", top: 1, ticks: percent, value: rateOf, band: (point) => (point.scored ? [point.low, point.high] : null), words: (point) => rateWords(point) },
  { title: "Cost of the agent for one sample", ticks: cost, value: (point) => point.cost, words: (point) => cost(point.cost) },
];

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function pathOf(points, x, y, value) {
  let path = "";
  let pen = "M";
  points.forEach((point, index) => {
    const height = value(point);
    if (unknown(height)) pen = "M";
    else { path += `${pen}${x(index)} ${y(height)}`; pen = "L"; }
  });
  return path;
}

/** A chart with a cursor, which the pointer, the arrow keys and the other charts of the group move. */
class Chart {
  constructor(chart, points, move) {
    this.chart = chart;
    this.points = points;
    this.move = move;
    const values = points.map(chart.value).filter((value) => !unknown(value));
    this.top = chart.top ?? (Math.max(...values, 0) || 1);
    this.svg = drawn("svg", { height: HEIGHT, tabindex: "0", role: "slider", "aria-label": chart.title, "aria-valuemin": "1", "aria-valuemax": String(points.length) });
    this.caption = element("figcaption", {});
    this.node = element("figure", {}, element("h3", {}, chart.title), this.svg, this.caption);
    this.svg.addEventListener("pointermove", (event) => this.move(this.indexAt(event)));
    this.svg.addEventListener("click", (event) => this.move(this.indexAt(event)));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  draw() {
    const width = Math.max(this.node.clientWidth, 200);
    const last = Math.max(this.points.length - 1, 1);
    const [wide, high] = [width - MARGIN.left - MARGIN.right, HEIGHT - MARGIN.top - MARGIN.bottom];
    this.x = (index) => Number((MARGIN.left + (this.points.length > 1 ? index / last : 0.5) * wide).toFixed(1));
    this.y = (value) => Number((MARGIN.top + (1 - value / this.top) * high).toFixed(1));
    this.width = width;
    const parts = [0, 0.5, 1].flatMap((share) => {
      const height = this.y(share * this.top);
      return [drawn("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: height, y2: height }), drawn("text", { x: MARGIN.left - 6, y: height + 4, "text-anchor": "end" }, this.chart.ticks(share * this.top))];
    });
    const shown = this.points.length > 1 ? [[0, "start"], [last, "end"]] : [[0, "middle"]];
    parts.push(...shown.map(([index, anchor]) => drawn("text", { x: this.x(index), y: HEIGHT - 5, "text-anchor": anchor }, day(this.points[index]))));
    parts.push(...this.changes(), ...this.bands());
    parts.push(drawn("path", { class: "line", d: pathOf(this.points, this.x, this.y, this.chart.value) }));
    this.points.forEach((point, index) => {
      const value = this.chart.value(point);
      if ((this.points.length <= DOTS || index === last) && !unknown(value)) parts.push(drawn("circle", { class: "dot", cx: this.x(index), cy: this.y(value), r: "2.5" }));
    });
    this.cursor = drawn("line", { class: "cursor", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(...parts, this.cursor);
  }

  changes() {
    let free = 0; // where the next letters do not cover the last ones
    return this.points.flatMap((point, index) => {
      const letters = changesOf(point).map(([, letter]) => letter).join("");
      if (!letters) return [];
      const across = this.x(index);
      const made = [drawn("line", { class: "change", x1: across, x2: across, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom })];
      if (across >= free) {
        made.push(drawn("text", { class: "letter", x: across, y: MARGIN.top - 6, "text-anchor": "middle" }, letters));
        free = across + 9 * (letters.length + 1);
      }
      return made;
    });
  }

  bands() {
    if (!this.chart.band) return [];
    const known = this.points.map((point, index) => [index, this.chart.band(point)]).filter(([, band]) => band);
    const upper = known.map(([index, [, high]]) => `${this.x(index)} ${this.y(high)}`);
    const lower = known.map(([index, [low]]) => `${this.x(index)} ${this.y(low)}`).reverse();
    return known.length > 1 ? [drawn("path", { class: "band", d: `M${[...upper, ...lower].join("L")}Z` })] : [];
  }

  indexAt(event) {
    const box = this.svg.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * this.width - MARGIN.left;
    const share = across / (this.width - MARGIN.left - MARGIN.right);
    return Math.round(Math.min(Math.max(share, 0), 1) * (this.points.length - 1));
  }

  key(event) {
    const last = this.points.length - 1;
    const next = { ArrowLeft: this.index - 1, ArrowDown: this.index - 1, ArrowRight: this.index + 1, ArrowUp: this.index + 1, PageDown: this.index - 10, PageUp: this.index + 10, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.move(Math.min(Math.max(next, 0), last));
  }

  show(index) {
    const point = this.points[index];
    this.index = index;
    this.cursor.setAttribute("x1", this.x(index));
    this.cursor.setAttribute("x2", this.x(index));
    const words = [`${minute(point)}, ${point.commit}: ${this.chart.words(point)}`, ...changeWords(point)].join("; ");
    this.svg.setAttribute("aria-valuenow", String(index + 1));
    this.svg.setAttribute("aria-valuetext", words);
    this.caption.textContent = words;
  }
}

let charts = [];

function move(index) {
  for (const chart of charts) chart.show(index);
}

// --- the runs of one suite

function commitNode(point) {
  return data.commits ? element("a", { href: `${data.commits}${point.commit}`, rel: "noreferrer" }, point.commit) : point.commit;
}

function runsTable(points) {
  const body = element("tbody");
  let shown = 0;
  const more = element("button", { onclick: () => add(points.length) }, "Show all runs");
  const cells = (point) => [commitNode(point), rateWords(point) + (point.errored ? `, ${plural(point.errored, "error")}` : ""), cost(point.cost), changeWords(point).join("; ") || "–"];
  function add(number) {
    const newest = [...points].reverse().slice(shown, shown + number);
    body.append(...newest.map((point) => element("tr", {}, element("th", { scope: "row" }, minute(point)), cells(point).map((cell) => element("td", {}, cell)))));
    shown += newest.length;
    more.hidden = shown === points.length;
  }
  add(ROWS);
  const titles = ["Run", "Commit", "Pass rate", "Cost", "Changed"];
  return element("details", {}, element("summary", {}, `All ${plural(points.length, "run")} as a table`),
    element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "runs" },
      element("table", {}, element("thead", {}, element("tr", {}, titles.map((word) => element("th", { scope: "col" }, word)))), body)), more);
}

// --- the page; the hash holds the suite

const section = document.getElementById("over-time");
const select = element("select", { onchange: () => { location.hash = `#suite=${encodeURIComponent(select.value)}`; } },
  suites.map((suite) => element("option", { value: suite.path }, suite.name)));
const list = element("div", { id: "charts-list" });
const below = element("div", {});
const keys = element("p", { class: "keys small muted" }, CHANGES.map(([, letter, word]) => element("span", {}, `${letter}: ${word} changed`)), element("span", {}, "The shaded band is the 95 % interval."));

/** The suite of the address, else the first one. */
function chosen() {
  const path = new URLSearchParams(location.hash.slice(1)).get("suite");
  return Math.max(suites.findIndex((suite) => suite.path === path), 0);
}

function show() {
  const { path, points } = suites[chosen()];
  select.value = path;
  charts = CHARTS.filter((chart) => points.some((point) => !unknown(chart.value(point)))).map((chart) => new Chart(chart, points, move));
  list.replaceChildren(...charts.map((chart) => chart.node));
  below.replaceChildren(runsTable(points));
  redraw(points.length - 1);
}

function redraw(index) {
  for (const chart of charts) chart.draw();
  if (charts.length) move(index);
}

if (suites.length) {
  section.hidden = false;
  section.append(element("div", { class: "controls" }, element("label", {}, "Suite", select)), keys, list, below);
  addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#suite=")) return; // the link to the flaky tests
    show();
    document.getElementById("charts").focus();
  });
  addEventListener("resize", () => redraw(charts[0]?.index ?? 0));
  show();
}
