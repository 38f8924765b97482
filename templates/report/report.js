const tests = data.tests;
const PAGE = 100; // rows that are added at once
const LONGEST_DIFF = 4_000_000; // pairs of words that are compared

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
function changeWord(test) {
  const word = test.change === "inconclusive" ? "undecided" : test.change;
  const tone = test.needsReview ? "bad" : test.change === "improved" ? "good" : test.head?.verdict === "pass" ? "" : "warn";
  return element("span", { class: `word ${tone || "quiet"}` }, `${SIGNS[test.change] ?? (test.needsReview ? "✗" : "·")} ${word}`);
}
const drop = (test) => (unknown(test.base?.score) || unknown(test.head?.score) ? 0 : test.base.score - test.head.score);

// --- the state is in the hash: filters, order, one test and its samples

const FILTERS = ["group", "suite", "evaluator", "gate", "conversation", "text", "sort"];

function readState() {
  const hash = location.hash.slice(1);
  const [path, query] = hash.startsWith("test/") ? [hash.split("?")[0], hash.split("?")[1] ?? ""] : ["", hash];
  const state = Object.fromEntries(new URLSearchParams(query));
  if (path) {
    const [, suite, id] = path.split("/").map(decode);
    state.test = tests.find((test) => test.id === id && data.suites[test.suite] === suite) ?? { id, suite, missing: true };
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

const groupsOf = (test) => (test.groups ?? []).map((index) => data.groups[index].key);

function matches(test, state) {
  if (state.group && !groupsOf(test).includes(state.group)) return false;
  if (state.suite && data.suites[test.suite] !== state.suite) return false;
  if (state.evaluator && !(test.evaluators ?? []).some((index) => data.evaluators[index] === state.evaluator)) return false;
  if (state.gate === "failed" ? !test.failedGates : state.gate && state.gate !== `=${(test.gates ?? []).find((gate) => `=${gate}` === state.gate)}`) return false;
  if (state.conversation && test.conversation !== state.conversation) return false;
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
  const entries = distinct(counts.keys()).map((value) => [value, `${value.replace(/^=/, "")} (${counts.get(value)})`]);
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
    element("div", { class: "controls" },
      filters.map(([key, label]) => [key, label, options(key)]).filter(([key, , entries]) => entries.length > 1 || (key === "group" && entries.length)).map(([key, label, entries]) => choice(key, label, entries, "all")),
      choice("sort", "Order", [["drop", "largest drop"], ["cost", "highest cost"], ["time", "longest time"]].filter(([key]) => key === "drop" || COLUMNS.some(([column]) => column === key)), "review first"),
      element("label", {}, "Search", search),
      element("button", { onclick: () => { location.hash = "#tests"; } }, "Reset"),
      element("button", { onclick: () => help.showModal(), "aria-haspopup": "dialog" }, "Keys")),
    listing.status,
    element("table", { class: "list" },
      element("thead", {}, element("tr", {}, ["Change", "Test", "Verdict"].map((word) => element("th", { scope: "col" }, word)), COLUMNS.map(([key]) => element("th", { scope: "col", class: "number" }, key[0].toUpperCase() + key.slice(1))))),
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
    element("td", { class: "wide" }, element("a", { class: "id", href: hashOf(state, test) }, test.id), test.turn ? element("span", { class: "muted small" }, ` ${test.conversation}, ${test.turn}`) : null,
      several ? element("div", { class: "muted small id" }, data.suites[test.suite]) : null,
      test.miss ? element("div", { class: "small id" }, test.miss.slice(0, 200)) : null),
    element("td", {}, verdicts(test)),
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

// --- the words in which two answers differ

const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** The words of both texts, each with whether the other text has it at its place; null for texts
 *  that are too long. */
function difference(base, head) {
  const [a, b] = [words(base), words(head)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const [rows, columns] = [a.length - start - end, b.length - start - end];
  if (rows * columns > LONGEST_DIFF) return null;
  // The length of the longest common subsequence of the rest of both, from each pair of words on.
  const lengths = new Uint32Array((rows + 1) * (columns + 1));
  const at = (row, column) => lengths[row * (columns + 1) + column];
  for (let row = rows - 1; row >= 0; row -= 1)
    for (let column = columns - 1; column >= 0; column -= 1)
      lengths[row * (columns + 1) + column] = a[start + row] === b[start + column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
  const [inBase, inHead] = [new Array(a.length).fill(true), new Array(b.length).fill(true)];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    if (row < rows && column < columns && a[start + row] === b[start + column]) { row += 1; column += 1; }
    else if (column === columns || (row < rows && at(row + 1, column) >= at(row, column + 1))) { inBase[start + row] = false; row += 1; }
    else { inHead[start + column] = false; column += 1; }
  }
  return [pairsOf(a, inBase), pairsOf(b, inHead)];
}

/** Words with whether they are the same; a space between two differing words differs too. */
function pairsOf(list, same) {
  const isSpace = (index) => /^\s+$/.test(list[index]);
  const differs = (index) => index >= 0 && index < list.length && !same[index];
  return list.map((word, index) => [word, same[index] && !(isSpace(index) && differs(index - 1) && differs(index + 1))]);
}

function marked(pairs) {
  const parts = [];
  let [text, same] = ["", true];
  const flush = () => { if (text) parts.push(same ? text : element("mark", {}, text)); text = ""; };
  for (const [word, isSame] of pairs) {
    if (isSame !== same) { flush(); same = isSame; }
    text += word;
  }
  flush();
  return parts;
}

// --- one test

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function answerOf(sample) {
  if (!sample) return "";
  const last = sample.outputMessages?.at(-1);
  return sample.candidateAnswer ?? (last && typeof last.content === "string" ? last.content : "");
}

function sideHeading(name, test, side, sample) {
  const shown = sample ?? {};
  const verdict = shown.verdict ?? (shown.error || side.error ? "error" : test[name].verdict);
  return `${name === "base" ? "Base" : "Head"}: ${verdict}, ${score(shown.score ?? test[name].score)}`;
}

function sides(details, make) {
  const found = ["base", "head"].filter((name) => details[name]);
  return element("div", { class: `sides${found.length < 2 ? " one" : ""}` }, found.map((name) => element("div", { class: `side ${name}` }, make(name, details[name]))));
}

function section(heading, ...content) {
  return [element("h2", {}, heading), ...content.flat().filter(Boolean)];
}

function answers(test, details, chosen) {
  const texts = { base: answerOf(chosen.base), head: answerOf(chosen.head) };
  const pairs = details.base && details.head && texts.base !== texts.head ? difference(texts.base, texts.head) : null;
  return section("Answers", sides(details, (name, side) => [
    element("h3", {}, sideHeading(name, test, side, chosen[name])),
    texts[name] ? element("pre", { tabindex: "0", "aria-label": `answer of ${name}` }, pairs ? marked(pairs[name === "base" ? 0 : 1]) : texts[name]) : element("p", { class: "muted" }, "(no answer)"),
    [chosen[name]?.error ?? side.error].filter(Boolean).map((error) => element("p", { class: "bad" }, `${error.kind}: ${error.message}`)),
  ]));
}

/** The question, or all messages that the agent got; those of base where they differ. */
function question(details) {
  const text = (words) => element("pre", { tabindex: "0", "aria-label": "question" }, words);
  const all = (numbers) => numbers.map((number) => {
    const message = data.messages[number];
    return element("div", { class: "message" }, element("p", { class: "muted small" }, message.name ? `${message.role} ${message.name}` : message.role), content(message), (message.tool_calls ?? []).map((call) => callNode(call, call)));
  });
  const [base, head] = [details.base?.input ?? [], details.head?.input ?? []];
  const input = head.length ? head : base;
  const onBase = head.length ? (String(base) !== String(head) ? all(base) : []) : details.baseQuestion ? [text(details.baseQuestion)] : [];
  return section(input.length ? "Messages" : "Question", input.length ? all(input) : text(details.question ?? ""),
    onBase.length ? element("p", {}, "On base:") : null, onBase);
}

function evaluatorNode(result, side = "") {
  if (!result) return element("p", { class: "muted" }, side ? element("strong", {}, `${side} `) : null, "not on this side");
  const mark = result.error ? "⚠" : result.passed === true ? "✓" : result.passed === false ? "✗" : "–";
  const tone = result.error ? "warn" : result.passed ? "good" : result.passed === false ? "bad" : "";
  return element("div", {},
    element("p", {}, side ? element("strong", {}, `${side} `) : null, element("span", { class: `word ${tone}` }, `${mark} ${score(result.score)}`), result.required ? " required" : "", result.error ? ` ${result.error.kind}: ${result.error.message}` : ""),
    element("ul", { class: "facts" }, (result.misses ?? []).map((text) => element("li", {}, `missed: ${text}`)), (result.hits ?? []).map((text) => element("li", {}, `held: ${text}`))),
    result.reasoning ? element("p", { class: "muted" }, result.reasoning) : null,
    (result.evaluatorResults ?? []).map((child) => element("details", { open: child.passed === false }, element("summary", {}, `${child.name} (${child.type})`), evaluatorNode(child))));
}

function evaluators(details, chosen) {
  const of = (name) => chosen[name]?.evaluatorResults ?? [];
  const names = [...new Set([...of("head"), ...of("base")].map((result) => result.name))];
  if (!names.length) return [];
  return section("Evaluators", names.map((name) => {
    const found = { base: of("base").find((result) => result.name === name), head: of("head").find((result) => result.name === name) };
    const either = found.head ?? found.base;
    const steady = found.head?.passed && (found.base?.passed ?? true);
    return element("details", { open: !steady }, element("summary", {}, `${name} (${either.type})`), sides(details, (side) => evaluatorNode(found[side], side === "base" ? "Base" : "Head")));
  }));
}

function calls(sample) {
  return (sample?.outputMessages ?? []).flatMap((message) => message.tool_calls ?? []);
}

function callNode(call, other) {
  const name = call.tool ?? call.function?.name ?? "?";
  const input = call.input ?? call.function?.arguments ?? null;
  const theirs = other?.input ?? null;
  const duration = unknown(call.duration_ms) ? "" : ` · ${time(call.duration_ms)}`;
  const isObject = input && typeof input === "object" && !Array.isArray(input);
  const differs = (key) => other && JSON.stringify(input[key]) !== JSON.stringify(theirs?.[key]);
  const differing = isObject ? Object.keys(input).some(differs) : other && JSON.stringify(input) !== JSON.stringify(theirs);
  const line = (key) => { const text = `${key}: ${asText(input[key])}`; return element("li", {}, differs(key) ? element("mark", {}, text) : text); };
  return element("details", { open: Boolean(differing) }, element("summary", {}, element("code", {}, name), duration, other ? null : " · only on this side"),
    isObject ? element("ul", { class: "facts" }, Object.keys(input).map(line)) : input === null ? null : element("pre", { tabindex: "0" }, asText(input)),
    unknown(call.output) ? null : element("details", {}, element("summary", {}, "result"), element("pre", { tabindex: "0" }, asText(call.output))));
}

function content(message) {
  if (typeof message.content === "string") return message.content ? [element("pre", { tabindex: "0" }, message.content)] : [];
  return (message.content ?? []).map((block) => element("pre", { tabindex: "0" }, block.type === "text" ? asText(block.value) : `[${block.type}] ${asText(block.value)}`));
}

function trace(details, chosen) {
  const talks = ["base", "head"].some((name) => (chosen[name]?.outputMessages ?? []).length > 1 || calls(chosen[name]).length);
  const changed = ["base", "head"].some((name) => chosen[name]?.fileChanges);
  if (!talks && !changed) return [];
  const seen = (name) => {
    const other = calls(chosen[name === "base" ? "head" : "base"]);
    const numbers = new Map();
    return (call) => {
      const number = numbers.get(call.tool) ?? 0;
      numbers.set(call.tool, number + 1);
      return details.base && details.head ? other.filter((theirs) => theirs.tool === call.tool)[number] : call;
    };
  };
  return section("Trace", sides(details, (name) => {
    const match = seen(name);
    return [element("h3", {}, name === "base" ? "Base" : "Head"),
      (chosen[name]?.outputMessages ?? []).map((message) => element("div", { class: "message" }, element("p", { class: "muted small" }, message.name ? `${message.role} ${message.name}` : message.role), content(message), (message.tool_calls ?? []).map((call) => callNode(call, match(call))))),
      chosen[name]?.fileChanges ? element("details", {}, element("summary", {}, "changed files"), element("pre", { tabindex: "0" }, chosen[name].fileChanges)) : null];
  }));
}

function figures(details, chosen) {
  const rows = [["Input tokens", "inputTokens", count], ["Output tokens", "outputTokens", count], ["Model calls", "llmCallCount", count], ["Tool calls", "toolCallCount", count], ["Cost of the agent", "costUsd", cost], ["Time", "durationMs", time]];
  const known = rows.filter(([, key]) => ["base", "head"].some((name) => !unknown(chosen[name]?.traceSummary?.[key])));
  if (!known.length) return [];
  const names = ["base", "head"].filter((name) => details[name]);
  return section("Tokens, cost and time", element("table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "This sample"), names.map((name) => element("th", { scope: "col", class: "number" }, name === "base" ? "Base" : "Head")))),
    element("tbody", {}, known.map(([label, key, format]) => element("tr", {}, element("th", { scope: "row" }, label), names.map((name) => element("td", { class: "number" }, format(chosen[name]?.traceSummary?.[key]))))))));
}

function samples(test, details, state, chosen) {
  if (["base", "head"].every((name) => (details[name]?.samples ?? []).length < 2)) return [];
  const fresh = ["base", "head"].some((name) => details[name]?.confirming);
  return section("Samples", fresh ? element("p", { class: "muted small" }, "Fresh samples were taken to confirm the change. p is the probability of so many failures if nothing had changed.") : [], sides(details, (name, side) => {
    const all = side.samples ?? [];
    const own = all.length - (side.confirming ?? 0);
    return [element("h3", {}, name === "base" ? "Base" : "Head"), element("div", { class: "bar" }, all.map((sample, index) => element("button", {
      "aria-pressed": String(sample === chosen[name]),
      onclick: () => { history.replaceState(null, "", hashOf({ ...state, [name]: String(index + 1) }, test)); show(); },
    }, `${index + 1}: ${sample.verdict ?? "error"} ${score(sample.score)}${index >= own ? " (fresh)" : ""}`)))];
  }));
}

function comparable(details) {
  if (!details.same) return null;
  const { question, grading } = details.same;
  const why = !question ? "The sides are not compared, because the question changed"
    : grading ? "The sides are comparable: question and grading are the same"
    : details.regraded ? "The sides are comparable: the grading changed, and head's evaluators scored base's answer again"
    : "The grading changed";
  const facts = Object.entries(details.same).map(([name, same]) => element("li", {}, `${name}: ${same ? "the same on both sides" : "changed"}`));
  return [element("p", {}, `${why}.`), element("ul", { class: "facts" }, facts)];
}

/** The command that runs the test; a shell and a glob read its words as they are. */
function commandOf(test) {
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  return `agentevals-action run ${quoted(data.suites[test.suite])} --test ${quoted(test.id.replace(/[*?[]/g, "[$&]"))}`;
}

function sourceOf(test, name) {
  const side = test.details[name];
  if (!side || !data.links[name]) return null;
  const path = side.path || data.suites[test.suite];
  const url = `${data.links[name]}${path.split("/").map(encodeURIComponent).join("/")}#L${side.line ?? 1}`;
  return element("a", { href: url, rel: "noreferrer" }, `${path}:${side.line ?? 1} on ${name}`);
}

function command(text) {
  const button = element("button", { onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // no permission: the reader copies it
    }
  } }, "Copy");
  const code = element("code", {}, text);
  return element("p", { class: "bar" }, code, button);
}

/** What the two sides have in common, where the test is, and how to run it. */
function origin(test, details) {
  const sources = [sourceOf(test, "head"), sourceOf(test, "base")].filter(Boolean);
  const targets = distinct(["base", "head"].map((name) => details[name]?.target).filter(Boolean));
  return section("Comparison and source", element("div", { class: "origin" }, comparable(details),
    element("p", { class: "bar" }, sources, targets.length ? element("span", { class: "muted" }, `target ${targets.join(" → ")}`) : null),
    details.head ? [element("p", {}, "Run this test on your own machine:"), command(commandOf(test))] : null));
}

function showTest(state) {
  const { test } = state;
  const back = element("a", { href: hashOf(state) }, "← All tests");
  if (test.missing) {
    article.replaceChildren(element("p", {}, back), element("h1", {}, `This report has no test ${test.id}`), element("p", {}, test.suite ?? ""));
    return;
  }
  const list = filtered(state);
  const place = list.indexOf(test);
  const near = (index, label) => (list[index] ? element("a", { href: hashOf({ ...state, base: "", head: "" }, list[index]) }, label) : null);
  const heading = element("h1", { tabindex: "-1" }, test.id);
  const top = [
    element("p", { class: "bar" }, back, place >= 0 ? element("span", { class: "muted" }, `${place + 1} of ${list.length}`) : null, near(place - 1, "Previous"), place >= 0 ? near(place + 1, "Next") : null),
    heading,
    element("p", { class: "bar" }, changeWord(test), element("span", {}, verdicts(test)), element("span", {}, `score ${moved(score, test.base?.score, test.head?.score)}`), element("span", { class: "muted id" }, data.suites[test.suite]), test.turn ? element("span", { class: "muted" }, `${test.conversation}, ${test.turn}`) : null),
  ];
  const { details } = test;
  if (!details) {
    article.replaceChildren(...top, element("p", {}, "This page has no details of this test. They are in results.jsonl of the report folder."));
    return;
  }
  // The sample that the verdict is shown by.
  const shown = (name) => Math.max(0, (details[name].samples ?? []).findIndex((sample) => sample.verdict === test[name].verdict));
  const pick = (name) => details[name]?.samples?.[Number(state[name]) ? Number(state[name]) - 1 : shown(name)];
  const chosen = { base: pick("base"), head: pick("head") };
  const gates = (test.failedGates ?? []).map((gate) => element("li", { class: "bad" }, `required gate ${gate} failed`));
  article.replaceChildren(...top,
    element("ul", { class: "facts" }, gates, (details.gatesRemoved ?? []).map((gate) => element("li", {}, `required gate ${gate} was removed`)), (details.facts ?? []).map((fact) => element("li", {}, fact))),
    ...question(details),
    ...answers(test, details, chosen), ...evaluators(details, chosen), ...trace(details, chosen), ...samples(test, details, state, chosen), ...figures(details, chosen), ...origin(test, details));
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
for (const link of document.querySelectorAll(".changes a")) link.addEventListener("click", () => setTimeout(() => document.getElementById("tests").scrollIntoView()));

addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !tests.length) return;
  if (typing && event.key === "Escape") { event.target.blur(); return; }
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
  } else if (event.key === "Enter" && !state.test && current >= 0 && !event.target.closest("a, button, summary")) {
    location.hash = hashOf(state, listing.shown[current]);
  } else if (event.key === "Escape" && state.test) {
    location.hash = hashOf(state);
  } else if (event.key === "/") {
    event.preventDefault();
    if (state.test) location.hash = hashOf(state);
    setTimeout(() => controls.text.focus());
  } else if (event.key === "?") {
    help.showModal();
  }
});

for (const dot of document.querySelectorAll("svg [data-test]")) {
  dot.addEventListener("click", () => {
    const test = tests.find((found) => found.id === dot.dataset.test && data.suites[found.suite] === dot.dataset.suite);
    if (test) location.hash = hashOf(readState(), test);
  });
}

if (tests.length) buildList();
show();
