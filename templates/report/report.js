const tests = data.tests;
const PAGE = 100; // rows that are added at once

const overview = document.getElementById("overview");
const article = document.getElementById("test");
const help = document.getElementById("help");
const title = document.title;

function moved(words, base, head) {
  const [before, after] = [words(base), words(head)];
  if (unknown(base) || unknown(head)) return unknown(base) ? after : before;
  return before === after ? after : `${before} → ${after}`;
}
function verdicts(test) {
  if (!test.head) return `${test.base.verdict} → removed`;
  return test.base && test.base.verdict !== test.head.verdict ? `${test.base.verdict} → ${test.head.verdict}` : test.head.verdict;
}
const SIGNS = { regressed: "▼", improved: "▲", new: "+", removed: "−", flaky: "≈", inconclusive: "?" };
/** What became of a test; its verdict where there is nothing to compare with. */
function changeWord(test) {
  const verdict = test.head?.verdict;
  const tone = test.needsReview || (!data.hasBase && verdict === "fail") ? "bad" : test.change === "improved" ? "good" : verdict === "pass" ? "quiet" : "warn";
  const sign = (data.hasBase && SIGNS[test.change]) || (verdict === "pass" ? (data.hasBase ? "·" : "✓") : ["error", "advisory"].includes(verdict) ? "⚠" : test.needsReview || !data.hasBase ? "✗" : "·");
  const word = !data.hasBase ? verdict : test.change === "inconclusive" ? "undecided" : test.change;
  return element("span", { class: `word ${tone}` }, `${sign} ${word}`);
}
const gateBadges = (test) => (test.failedGates ?? []).map((gate) => element("span", { class: "badge" }, `gate ${gate} failed`));
const turnWords = (test) => (test.turn ? `turn ${test.turn} of ${test.turns}` : "removed turn");
const drop = (test) => (unknown(test.base?.score) || unknown(test.head?.score) ? 0 : test.base.score - test.head.score);

// --- the state is in the hash: filters, order, one test and its samples

const FILTERS = ["group", "suite", "evaluator", "gate", "conversation", "scores", "text", "sort"];

function readState() {
  const hash = location.hash.slice(1);
  const [path, query] = hash.startsWith("test/") ? [hash.split("?")[0], hash.split("?")[1] ?? ""] : ["", hash];
  const state = Object.fromEntries(new URLSearchParams(query));
  if (!Object.hasOwn(ORDERS, state.sort)) delete state.sort;
  if (path || state.test) {
    const [suite, id] = path ? path.split("/").slice(1).map(decode) : [undefined, state.test];
    state.test = tests.find((test) => test.id === id && [undefined, data.suites[test.suite]].includes(suite)) ?? { id, suite, missing: true };
  }
  return state;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a hash that a person typed
  }
}

function hashOf(state, test = null) {
  const query = new URLSearchParams();
  for (const key of test ? [...FILTERS, "base", "head"] : FILTERS) if (state[key]) query.set(key, state[key]);
  const words = query.toString();
  if (!test) return `#${words || "tests"}`;
  return `#test/${encodeURIComponent(data.suites[test.suite])}/${encodeURIComponent(test.id)}${words ? `?${words}` : ""}`;
}

// --- the list

const searchText = new WeakMap();
function textOf(test) {
  if (!searchText.has(test)) searchText.set(test, `${test.id} ${data.suites[test.suite]} ${JSON.stringify(test.details ?? test.miss ?? "")}`.toLowerCase());
  return searchText.get(test);
}

// A column without a known figure is left out.
const COLUMNS = [["score", score], ["cost", cost], ["time", time]].filter(([key]) => tests.some((test) => !unknown(test.base?.[key]) || !unknown(test.head?.[key])));

const ORDERS = {
  drop: (first, second) => drop(second) - drop(first),
  cost: (first, second) => (second.head?.cost ?? -1) - (first.head?.cost ?? -1),
  time: (first, second) => (second.head?.time ?? -1) - (first.head?.time ?? -1),
};

const groupsOf = (test) => test.groups.map((index) => data.groups[index].key);

function matches(test, state) {
  if (state.group && !groupsOf(test).includes(state.group)) return false;
  if (state.suite && data.suites[test.suite] !== state.suite) return false;
  if (state.evaluator && !(test.evaluators ?? []).some((index) => data.evaluators[index] === state.evaluator)) return false;
  if (state.gate === "failed" ? !test.failedGates : state.gate && state.gate !== `=${(test.gates ?? []).find((gate) => `=${gate}` === state.gate)}`) return false;
  if (state.conversation && test.conversation !== state.conversation) return false;
  if (state.scores && state.scores !== `${score(test.base?.score)},${score(test.head?.score)}`) return false;
  return !state.text || state.text.toLowerCase().split(/\s+/).every((word) => textOf(test).includes(word));
}

function filtered(state) {
  const found = tests.filter((test) => matches(test, state));
  const order = ORDERS[state.sort];
  return order ? [...found].sort(order) : found;
}

const distinct = (values) => [...new Set(values)].sort();

function options(key) {
  const counts = new Map();
  const add = (value) => counts.set(value, (counts.get(value) ?? 0) + 1);
  for (const test of tests) {
    if (key === "suite") add(data.suites[test.suite]);
    if (key === "evaluator") (test.evaluators ?? []).forEach((index) => add(data.evaluators[index]));
    if (key === "gate") (test.gates ?? []).forEach((gate) => add(`=${gate}`));
    if (key === "conversation" && test.conversation) add(test.conversation);
  }
  if (key === "group") return data.groups.map((group) => [group, tests.filter((test) => groupsOf(test).includes(group.key)).length]).filter(([, number]) => number).map(([group, number]) => [group.key, `${group.label} (${number})`]);
  const named = (value) => (key === "suite" ? data.names[data.suites.indexOf(value)] : value.replace(/^=/, ""));
  const entries = distinct(counts.keys()).map((value) => [value, `${named(value)} (${counts.get(value)})`]);
  const failed = tests.filter((test) => test.failedGates).length;
  if (key === "gate" && failed) entries.unshift(["failed", `any that failed (${failed})`]);
  return entries;
}

const controls = {};
const listing = { body: null, more: null, status: null, shown: [], room: PAGE };

function choice(key, label, entries, first) {
  const select = element("select", { onchange: () => change(key, select.value) }, element("option", { value: "" }, first), entries.map(([value, words]) => element("option", { value }, words)));
  controls[key] = select;
  return element("label", {}, label, select);
}

function buildList() {
  const search = element("input", { type: "search", placeholder: "id, question, answer", oninput: () => change("text", search.value) });
  controls.text = search;
  const filters = [["group", "Group"], ["suite", "Suite"], ["evaluator", "Evaluator"], ["gate", "Required gate"], ["conversation", "Conversation"]];
  listing.body = element("tbody");
  listing.status = element("p", { role: "status", class: "muted small" });
  listing.more = element("button", { id: "more", onclick: () => { listing.room += 5 * PAGE; fillRows(readState()); } });
  document.getElementById("list").append(
    element("details", { class: "filters", open: matchMedia("(min-width: 44rem)").matches }, element("summary", {}, "Filters"), element("div", { class: "controls" },
      filters.map(([key, label]) => [key, label, options(key)]).filter(([key, , entries]) => entries.length > 1 || (key === "group" && entries.length)).map(([key, label, entries]) => choice(key, label, entries, "all")),
      choice("sort", "Order", [["drop", "largest drop"], ["cost", "highest cost"], ["time", "longest time"]].filter(([key]) => key === "drop" || COLUMNS.some(([column]) => column === key)), "review first"),
      element("label", {}, "Search", search),
      element("button", { onclick: () => { location.hash = "#tests"; } }, "Reset"),
      element("button", { onclick: () => help.showModal(), "aria-haspopup": "dialog" }, "Keys"))),
    listing.status,
    element("table", { class: "list" },
      element("thead", {}, element("tr", {}, (data.hasBase ? ["Change", "Test", "Verdict"] : ["Verdict", "Test"]).map((word) => element("th", { scope: "col" }, word)), COLUMNS.map(([key]) => element("th", { scope: "col", class: "number" }, key[0].toUpperCase() + key.slice(1))))),
      listing.body),
    listing.more);
}

function change(key, value) {
  const state = { ...readState(), [key]: value };
  history.replaceState(null, "", hashOf(state));
  show();
}

function fillRows(state) {
  listing.shown = filtered(state);
  const several = data.suites.length > 1;
  const rows = listing.shown.slice(0, listing.room).map((test) => element("tr", {},
    element("td", {}, changeWord(test)),
    element("td", { class: "wide" }, element("a", { class: "id", href: hashOf(state, test) }, test.id), " ", gateBadges(test), test.turn ? element("span", { class: "muted small" }, ` ${test.conversation}, ${turnWords(test)}`) : null,
      several ? element("div", { class: "muted small id" }, data.names[test.suite]) : null,
      test.miss ? element("div", { class: "small id" }, test.miss) : null),
    data.hasBase ? element("td", {}, verdicts(test)) : null,
    COLUMNS.map(([key, format]) => element("td", { class: "number", "data-label": key }, moved(format, test.base?.[key], test.head?.[key])))));
  listing.body.replaceChildren(...rows);
  const left = listing.shown.length - rows.length;
  listing.more.hidden = !left;
  listing.more.textContent = `Show ${Math.min(left, 5 * PAGE)} more of ${left}`;
  listing.status.textContent = !listing.shown.length ? "No test matches the filters." : listing.shown.length === tests.length ? plural(tests.length, "test") : `${listing.shown.length} of ${plural(tests.length, "test")}`;
  select(Math.min(current, rows.length - 1));
}

let current = -1;
function select(index, focus = false) {
  const rows = listing.body.children;
  rows[current]?.removeAttribute("aria-current");
  current = index;
  rows[current]?.setAttribute("aria-current", "true");
  if (focus) rows[current]?.querySelector("a").focus();
}

// --- the page

let opened = null;
let scrolled = 0;

function show() {
  const state = readState();
  for (const [key, control] of Object.entries(controls)) if (control.value !== (state[key] ?? "")) control.value = state[key] ?? "";
  const isTest = Boolean(state.test);
  if (isTest && overview.hidden === false) scrolled = scrollY;
  overview.hidden = isTest;
  article.hidden = !isTest;
  if (!isTest) {
    article.replaceChildren();
    document.title = title;
    if (tests.length) fillRows(state);
    if (opened) {
      const index = listing.shown.indexOf(opened);
      if (index >= 0) select(index, true);
      scrollTo(0, scrolled);
    }
    opened = null;
    return;
  }
  showTest(state);
  document.title = `${state.test.id} · ${title}`;
  if (opened !== state.test) {
    article.querySelector("h1").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  opened = state.test;
}

addEventListener("hashchange", () => { listing.room = PAGE; show(); });
for (const link of document.querySelectorAll(".changes a, figure a")) link.addEventListener("click", () => setTimeout(() => document.getElementById("tests").scrollIntoView()));

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !tests.length) return;
  if (typing && event.key === "Escape") {
    if (event.target === controls.text) change("text", "");
    event.target.blur();
  }
  if (typing) return;
  const state = readState();
  const step = { j: 1, k: -1 }[event.key];
  if (step && state.test) {
    const list = filtered(state);
    const next = list[list.indexOf(state.test) + step];
    if (next) location.hash = hashOf({ ...state, base: "", head: "" }, next);
  } else if (step) {
    const index = Math.max(0, Math.min(current + step, listing.body.children.length - 1));
    if (listing.body.children.length) select(index, true);
  } else if (state.test && ["n", "p"].includes(event.key)) {
    goToDifference(event.key === "n" ? 1 : -1);
  } else if (event.key === "Enter" && !state.test && current >= 0 && !event.target.closest("a, button, summary")) {
    location.hash = hashOf(state, listing.shown[current]);
  } else if (event.key === "Escape" && state.test) {
    location.hash = hashOf(state);
  } else if (event.key === "/") {
    event.preventDefault();
    if (state.test) location.hash = hashOf(state);
    controls.text.closest("details").open = true;
    setTimeout(() => controls.text.focus());
  } else if (event.key === "?") {
    help.showModal();
  }
});

if (tests.length) buildList();
show();
