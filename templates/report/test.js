// --- one test

const SIDES = ["base", "head"];
const NAMES = { base: "Base", head: "Head" };
/** The note at the end of a text of which the page has only the beginning. */
const CUT = /\n… \([\d,]+ more characters: see results\.jsonl\)$/;

const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const block = (text, label = null) => element("pre", { tabindex: "0", "aria-label": label }, text);
const REASONS = 5; // above the answers
const REASON = 300; // characters

function sides(details, make, others = []) {
  const found = SIDES.filter((side) => details[side]);
  const number = found.length + others.length;
  return element("div", { class: `sides${number < 2 ? " one" : number > 2 ? " three" : ""}` }, found.map((side) => element("div", { class: `side ${side}` }, make(side, details[side]))), others.map((nodes) => element("div", { class: "side" }, nodes)));
}

function section(heading, ...content) {
  const shown = content.flat(Infinity).filter(Boolean);
  return shown.length ? [element("h2", {}, heading), ...shown] : [];
}

/** Why a side has no result, or no score of an evaluator. */
function failure(error) {
  return error.kind === "target" ? "the agent failed" : data.errorKinds[error.kind] ?? error.kind;
}
const errorNodes = (error) => error.kind === "advisory" ? [element("p", { class: "muted" }, `${failure(error)}: ${error.message}`)] : [element("p", { class: "bad" }, failure(error)), element("pre", { class: "error", tabindex: "0" }, error.message)];

/** The samples of both sides that are shown: the chosen ones, else those with the verdict. */
function chosenSamples(test, state = {}) {
  const pick = (side) => {
    const samples = test.details[side]?.samples ?? [];
    return samples[state[side] - 1] ?? samples.find((sample) => sample.verdict === test[side].verdict) ?? samples[0];
  };
  return { base: pick("base"), head: pick("head") };
}

/** The question, or all messages that the agent got; those of base where they differ. */
function questions(details) {
  const all = (numbers) => numbers.map((number) => messageNode(data.messages[number]));
  const [base, head] = [details.base?.input ?? [], details.head?.input ?? []];
  const input = head.length ? head : base;
  const onBase = head.length ? (String(base) !== String(head) ? all(base) : []) : details.baseQuestion ? [block(details.baseQuestion, "question of base")] : [];
  return [input.length ? all(input) : details.question ? block(details.question, "question") : null, onBase.length ? [element("p", {}, "On base:"), onBase] : null];
}

function answerOf(sample) {
  const last = sample?.outputMessages?.at(-1);
  return sample?.candidateAnswer ?? (last && typeof last.content === "string" ? last.content : "");
}

/** Data as indented JSON with sorted keys; null for other texts, and for numbers that would be rounded. */
function indentedJson(text) {
  try {
    const value = JSON.parse(text, (key, item) => {
      if (typeof item === "number" && Math.abs(item) > Number.MAX_SAFE_INTEGER) throw new RangeError(key);
      return item && typeof item === "object" && !Array.isArray(item) ? Object.fromEntries(Object.entries(item).sort(([first], [second]) => (first < second ? -1 : 1))) : item;
    });
    return value && typeof value === "object" ? JSON.stringify(value, null, 2) : null;
  } catch {
    return null;
  }
}

/** The answers of both sides as they are compared: data indented, unless only its form differs. */
function comparedTexts(texts) {
  const data = texts.map((text) => text && indentedJson(text));
  return data.includes(null) || (data[0] === data[1] && texts[0] !== texts[1]) ? texts : data;
}

/** The verdict of a sample, or why it has none. */
const stateOf = (sample) => sample.verdict ?? (sample.error?.kind === "advisory" ? "advisory" : "error");

/** Why a sample is no success: what its evaluators missed, or its error. */
function reasons(details, sample) {
  const failed = (sample?.evaluatorResults ?? []).filter((result) => !result.advisory && (result.error || result.passed === false));
  const texts = failed.flatMap((result) => (result.misses?.length ? result.misses : [result.error ? `${failure(result.error)}: ${result.error.message}` : result.reasoning || scoreOf(result)]).map((text) => `${result.name}: ${text}`));
  const error = sample ? sample.error : details.head?.error;
  if (error && !texts.length) texts.push(`${failure(error)}: ${error.message}`);
  const rest = texts.splice(REASONS);
  const shown = texts.map((text) => element("li", { class: "bad" }, text.length > REASON ? `${text.slice(0, REASON)}…` : text));
  return rest.length ? [shown, element("li", {}, `… and ${rest.length} more, below`)] : shown;
}

/** An answer in Markdown, as a person reads it. */
function rendered(sample) {
  if (!sample?.html || indentedJson(answerOf(sample))) return null;
  const made = element("div", { class: "rendered", tabindex: "0", role: "group", "aria-label": "answer as rendered Markdown" });
  made.innerHTML = sample.html;
  return element("details", {}, element("summary", {}, "Rendered Markdown"), made);
}

/** The answers in the variants, each by a sample with the verdict of the test. */
function variantAnswers(details) {
  return (details.variants ?? []).map((variant) => {
    const { samples = [], error } = variant;
    const sample = samples.find(({ verdict }) => verdict === variant.verdict) ?? samples[0];
    return [element("h3", {}, `${variant.name}: ${variant.verdict}${unknown(variant.score) ? "" : `, ${score(variant.score)}`}`),
      answerOf(sample) ? [block(answerOf(sample), `answer ${variant.name}`), rendered(sample)] : error ? null : element("p", { class: "muted" }, "(no answer)"),
      error ? errorNodes(error) : element("ul", { class: "facts" }, reasons(details, sample))];
  });
}

function answers(test, chosen) {
  const { details } = test;
  const texts = { base: answerOf(chosen.base), head: answerOf(chosen.head) };
  const others = variantAnswers(details);
  const [base, head] = comparedTexts(SIDES.map((side) => texts[side].replace(CUT, "")));
  const shown = { base: [base, texts.base.match(CUT)?.[0]], head: [head, texts.head.match(CUT)?.[0]] };
  const errors = SIDES.map((side) => chosen[side]?.error ?? details[side]?.error);
  if (!details.question && !details.baseQuestion && !base && !head && !errors.some(Boolean)) return []; // a runner that reports verdicts alone
  const scored = (side) => {
    const sample = chosen[side];
    const figure = sample?.score ?? test[side].score;
    return `${sample?.verdict || sample?.error ? stateOf(sample) : details[side].error ? "error" : test[side].verdict}${unknown(figure) ? "" : `, ${score(figure)}`}`;
  };
  if (head && base === head && !errors.some(Boolean)) {
    const equal = CUT.test(texts.head) ? "Both answers are equal in the part that is shown" : "Both answers are equal";
    return [element("h3", {}, details.differsLater ? "The answers differ after the part that is shown" : equal, `: base ${scored("base")}; head ${scored("head")}`), block(shown.head, "answer of both sides"), rendered(chosen.head), others.length ? sides({}, null, others) : null];
  }
  const runs = base && head ? alignTexts(base, head) : null;
  return [sides(details, (side) => {
    const error = errors[SIDES.indexOf(side)];
    const text = runs ? [markedText(runs, side), shown[side][1]] : shown[side];
    return [element("h3", {}, `${NAMES[side]}: ${scored(side)}`),
      texts[side] ? [block(text, `answer of ${side}`), rendered(chosen[side])] : error ? null : element("p", { class: "muted" }, "(no answer)"),
      error ? errorNodes(error) : null];
  }, others)];
}

/** All turns of the conversation of a test, in their order; those that need a reader are open. */
function conversation(test, chosen) {
  const turns = tests.filter((other) => other.suite === test.suite && other.conversation === test.conversation);
  turns.sort((first, second) => (first.turn ?? Infinity) - (second.turn ?? Infinity));
  return section(`Conversation ${test.conversation}`, turns.map((turn) => {
    const isThis = turn === test;
    const isSteady = turn.head?.verdict === "pass" && (turn.base?.verdict ?? "pass") === "pass";
    return element("details", { class: "turn", open: isThis || !isSteady, "aria-current": isThis },
      element("summary", {}, `${turnWords(turn)}: ${turn.id} `, changeWord(turn), ` ${verdicts(turn)}`),
      isThis ? null : element("p", {}, element("a", { href: hashOf(readState(), turn) }, "Evaluators and trace of this turn")),
      turn.details ? turnNodes(turn, isThis ? chosen : chosenSamples(turn), isThis) : element("p", { class: "muted" }, NO_DETAILS));
  }));
}

function turnNodes(turn, chosen, isThis) {
  const { question, head, base } = turn.details;
  const input = head?.input ?? base?.input ?? [];
  return [isThis ? null : element("ul", { class: "facts" }, reasons(turn.details, chosen.head)),
    block(question ?? "", "question"),
    input.length ? element("details", {}, element("summary", {}, `The ${plural(input.length, "message")} that the agent got`), questions(turn.details)) : null,
    answers(turn, chosen)];
}

const tone = (result) => (result.advisory ? "" : result.error ? "warn" : result.passed ? "good" : result.passed === false ? "bad" : "");
function scoreOf(result) {
  const sign = result.error ? "⚠" : result.passed === true ? "✓" : result.passed === false ? "✗" : "–";
  return `${sign} ${score(result.score, result.required)}${result.advisory ? " (advisory)" : ""}`;
}

function evaluatorNode(result) {
  return [result.advisory ? element("p", {}, `Advisory, decides nothing: ${result.advisory}`) : null,
    result.error ? errorNodes(result.error) : null,
    element("ul", { class: "facts" }, (result.misses ?? []).map((text) => element("li", {}, `missed: ${text}`)), (result.hits ?? []).map((text) => element("li", {}, `held: ${text}`))),
    result.reasoning ? element("p", { class: "muted" }, result.reasoning) : null,
    (result.evaluatorResults ?? []).map((child) => element("details", { open: child.passed === false }, element("summary", {}, `${child.name} (${child.type}) `, element("span", { class: `word ${tone(child)}` }, scoreOf(child))), evaluatorNode(child)))];
}

function evaluators(details, chosen) {
  const of = (side) => chosen[side]?.evaluatorResults ?? [];
  const names = new Set([...of("head"), ...of("base")].map((result) => result.name));
  return section("Evaluators", [...names].map((name) => {
    const found = Object.fromEntries(SIDES.map((side) => [side, of(side).find((result) => result.name === name)]));
    const either = found.head ?? found.base;
    const state = (side) => {
      const error = chosen[side]?.error ?? details[side].error;
      if (found[side]) return element("span", { class: `word ${tone(found[side])}` }, scoreOf(found[side]));
      return element("span", { class: "muted" }, error ? `Not run: ${failure(error)}` : "not on this side");
    };
    const [first, second] = SIDES.filter((side) => details[side]).map(state);
    return element("details", { open: SIDES.some((side) => found[side] && !found[side].passed) },
      element("summary", {}, `${name} (${either.type}${either.required ? ", required" : ""}) `, first, second && first.textContent !== second.textContent ? [" → ", second] : null),
      sides(details, (side) => [element("p", {}, element("strong", {}, NAMES[side]), " ", state(side)), found[side] ? evaluatorNode(found[side]) : null]));
  }));
}

/** What pairwise evaluators say about the two answers, in both orders. */
function pairs(details) {
  const words = ["base is much better", "base is slightly better", "equal", "head is slightly better", "head is much better"];
  const preference = (result) => (unknown(result.score) ? "not judged" : words[4 * result.score]);
  return section("Head's answer against base's", (details.head?.pairs?.[0]?.evaluatorResults ?? []).map((result) =>
    element("details", { open: result.score !== 0.5 }, element("summary", {}, `${result.name}: ${result.score === 0.5 ? "tie" : preference(result)}`),
      result.error ? errorNodes(result.error) : result.reasoning ? element("p", { class: "muted" }, result.reasoning) : null,
      element("ul", { class: "facts" }, (result.evaluatorResults ?? []).map((order) => element("li", {}, `${order.name}: ${preference(order)}. ${order.reasoning ?? ""}`))))));
}

// --- the trace: what the agent said and did

const callsOf = (sample) => (sample?.outputMessages ?? []).flatMap((message) => message.tool_calls ?? []);
const toolOf = (call) => call.tool ?? call.function?.name ?? "?";
const inputOf = (call) => call.input ?? call.function?.arguments ?? null;

/** Each call with `other`, the equal or the next call of the same tool on the other side, null
 *  without one, and the number of the difference. */
function matchCalls(chosen) {
  const matches = new Map();
  if (!SIDES.every((side) => chosen[side]?.outputMessages?.length)) return matches;
  const [base, head] = SIDES.map((side) => callsOf(chosen[side]));
  const keys = (calls) => calls.map((call) => JSON.stringify([toolOf(call), inputOf(call)]));
  let [row, column] = [0, 0];
  for (const run of align(keys(base), keys(head))) {
    const ours = base.slice(row, (row += run.base.length));
    const theirs = head.slice(column, (column += run.head.length));
    for (const call of ours) {
      const index = run.same ? 0 : theirs.findIndex((other) => toolOf(other) === toolOf(call));
      const other = index < 0 ? null : theirs.splice(index, 1)[0];
      const number = (differences.last += 1);
      matches.set(call, { other, number });
      if (other) matches.set(other, { other: call, number });
    }
    for (const call of theirs) matches.set(call, { other: null, number: (differences.last += 1) });
  }
  return matches;
}

/** A call in one line, open if it differs from that of the other side; `match` is undefined where
 *  the sides are not compared. */
function callNode(call, side, match) {
  const input = inputOf(call);
  const isObject = input && typeof input === "object" && !Array.isArray(input);
  const isOnly = match?.other === null;
  const theirs = match?.other ? inputOf(match.other) : null;
  const differs = Boolean(match?.other) && JSON.stringify(input) !== JSON.stringify(theirs);
  const argument = (key) => {
    const text = `${key}: ${asText(input[key])}`;
    const isSame = !differs || JSON.stringify(input[key]) === JSON.stringify(theirs?.[key]);
    return element("li", {}, isSame ? text : mark(text, match.number));
  };
  const first = isObject ? Object.values(input).map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(", ") : input === null ? "" : asText(input);
  const duration = unknown(call.duration_ms) ? "" : ` ${time(call.duration_ms)}`;
  return element("details", { class: `call${isOnly ? " only" : ""}`, open: differs },
    element("summary", {}, isOnly ? mark(`only on ${side}`, match.number) : null, " ", element("code", {}, toolOf(call)), call.refused ? element("span", { class: "muted" }, " refused") : null, element("span", { class: "muted" }, duration), ` ${first.slice(0, 150).replace(/\s+/g, " ")}`),
    isObject ? element("ul", { class: "facts" }, Object.keys(input).map(argument)) : input === null ? null : block(differs ? mark(asText(input), match.number) : asText(input)),
    unknown(call.output) ? null : element("details", {}, element("summary", {}, "result"), block(asText(call.output))));
}

function content(message) {
  if (typeof message.content === "string") return message.content ? [block(message.content)] : [];
  return (message.content ?? []).map((part) => {
    if (part.type === "image" && typeof part.value === "number") return element("img", { src: data.pictures[part.value], alt: "picture of the question" });
    return block(part.type === "text" ? asText(part.value) : `[${part.type}] ${asText(part.value)}`);
  });
}

function messageNode(message, side = "", matches = new Map()) {
  const said = content(message);
  return element("div", { class: "message" }, said.length || message.role !== "assistant" ? element("p", { class: "muted small" }, message.name ? `${message.role} ${message.name}` : message.role) : null,
    said, (message.tool_calls ?? []).map((call) => callNode(call, side, matches.get(call))));
}

function trace(details, chosen) {
  const matches = matchCalls(chosen);
  // The last message is the answer, which stands above.
  const steps = (side) => (chosen[side]?.outputMessages ?? []).filter((message, index, all) => index < all.length - 1 || message.tool_calls?.length);
  if (!SIDES.some((side) => steps(side).length || chosen[side]?.fileChanges)) return [];
  return section("Trace", sides(details, (side) => [
    element("h3", {}, `${NAMES[side]}: ${plural(callsOf(chosen[side]).length, "call")}`),
    steps(side).map((message) => messageNode(message, side, matches)),
    chosen[side]?.fileChanges ? element("details", {}, element("summary", {}, "changed files"), block(chosen[side].fileChanges)) : null]));
}

// --- figures, samples, source

function figures(details, chosen) {
  const rows = [["Input tokens", "inputTokens", count], ["Output tokens", "outputTokens", count], ["Model calls", "llmCallCount", count], ["Tool calls", "toolCallCount", count], ["Cost of the agent", "costUsd", cost], ["Time", "durationMs", time]];
  const known = rows.filter(([, key]) => SIDES.some((side) => !unknown(chosen[side]?.traceSummary?.[key])));
  if (!known.length) return [];
  const names = SIDES.filter((side) => details[side]);
  return section("Tokens, cost and time", element("table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "This sample"), names.map((side) => element("th", { scope: "col", class: "number" }, NAMES[side])))),
    element("tbody", {}, known.map(([label, key, format]) => element("tr", {}, element("th", { scope: "row" }, label), names.map((side) => element("td", { class: "number" }, format(chosen[side]?.traceSummary?.[key]))))))));
}

function samples(test, state, chosen) {
  const { details } = test;
  if (SIDES.every((side) => (details[side]?.samples ?? []).length < 2)) return [];
  const isFresh = (sample) => sample.role === "fresh";
  const fresh = SIDES.some((side) => details[side]?.samples?.some(isFresh));
  return section("Samples", fresh ? element("p", { class: "muted small" }, "Fresh samples were taken to confirm the change. p is the probability of so many failures if nothing had changed.") : null, sides(details, (name, side) => {
    const all = side.samples ?? [];
    return [element("h3", {}, NAMES[name]), element("div", { class: "bar" }, all.map((sample, index) => element("button", {
      "aria-pressed": String(sample === chosen[name]),
      onclick: () => { history.replaceState(null, "", hashOf({ ...state, [name]: String(index + 1) }, test)); show(); },
    }, `${index + 1}: ${stateOf(sample)} ${score(sample.score)}${isFresh(sample) ? " (fresh)" : ""}`)))];
  }));
}

function comparable(details) {
  if (!details.same) return null;
  const { question, grading } = details.same;
  const why = !question ? "The sides are not compared, because the question changed"
    : grading ? "The sides are comparable: question and grading are the same"
    : details.rescored ? "The sides are comparable: the grading changed, and head's evaluators scored base's answer again"
    : "The grading changed";
  const facts = Object.entries(details.same).map(([name, same]) => element("li", {}, `${name}: ${same ? "the same on both sides" : "changed"}`));
  return [element("p", {}, `${why}.`), element("ul", { class: "facts" }, facts)];
}

/** The command that runs the test; a shell and a glob read its words as they are. */
function commandOf(test) {
  const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
  return `agentevals-action run ${quoted(data.suites[test.suite])} --test ${quoted(test.id.replace(/[*?[]/g, "[$&]"))}`;
}

function sourceOf(test, side) {
  const result = test.details[side];
  if (!result || !data.links[side]) return null;
  const path = result.path || data.suites[test.suite];
  const url = `${data.links[side]}${path.split("/").map(encodeURIComponent).join("/")}#L${result.line ?? 1}`;
  return element("a", { href: url, rel: "noreferrer" }, `${path}:${result.line ?? 1} on ${side}`);
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
  const targets = distinct(SIDES.map((side) => details[side]?.target).filter(Boolean));
  return section(data.hasBase ? "Comparison and source" : "Source", element("div", { class: "origin" }, comparable(details),
    element("p", { class: "bar" }, sources, targets.length ? element("span", { class: "muted" }, `target ${targets.join(" → ")}`) : null),
    details.head ? [element("p", {}, "Run this test on your own machine:"), command(commandOf(test))] : null));
}

/** The buttons for readers without a keyboard. */
function differenceButtons() {
  if (!differences.last || !article.querySelector("mark")) return;
  const button = (step, label) => element("button", { onclick: () => goToDifference(step) }, label);
  article.querySelector("h1").nextElementSibling.append(button(-1, "Previous difference (p)"), button(1, "Next difference (n)"), element("span", { role: "status", class: "muted" }));
}

const NO_DETAILS = "This page has no details of this test. They are in results.jsonl of the report folder.";

function showTest(state) {
  const { test } = state;
  const back = element("a", { href: hashOf(state) }, "← All tests");
  if (test.missing) {
    article.replaceChildren(element("p", {}, back), element("h1", { tabindex: "-1" }, `This report has no test ${test.id}`), element("p", {}, test.suite ?? ""));
    return;
  }
  Object.assign(differences, { last: 0, current: 0 });
  const list = filtered(state);
  const place = list.indexOf(test);
  const near = (index, label) => (list[index] ? element("a", { href: hashOf({ ...state, base: "", head: "" }, list[index]) }, label) : null);
  const top = [
    element("p", { class: "bar" }, back, place >= 0 ? element("span", { class: "muted" }, `${place + 1} of ${list.length}`) : null, near(place - 1, "Previous"), place >= 0 ? near(place + 1, "Next") : null),
    element("h1", { tabindex: "-1" }, test.id),
    element("p", { class: "bar" }, changeWord(test), gateBadges(test), data.hasBase ? element("span", {}, verdicts(test)) : null, element("span", {}, `score ${moved(score, test.base?.score, test.head?.score)}`), element("span", { class: "muted id" }, data.names[test.suite])),
  ];
  const { details } = test;
  if (!details) {
    article.replaceChildren(...top, element("p", {}, NO_DETAILS));
    return;
  }
  const chosen = chosenSamples(test, state);
  const asked = test.turn ? conversation(test, chosen) : [...section(details.head?.input || details.base?.input ? "Messages" : "Question", questions(details)), ...section("Answers", answers(test, chosen))];
  article.replaceChildren(...top,
    element("ul", { class: "facts" }, reasons(details, chosen.head), (details.gatesRemoved ?? []).map((gate) => element("li", {}, `required gate ${gate} was removed`)), (details.facts ?? []).map((fact) => element("li", {}, fact))),
    ...asked, ...evaluators(details, chosen), ...pairs(details), ...trace(details, chosen), ...samples(test, state, chosen), ...figures(details, chosen), ...origin(test, details));
  differenceButtons();
}
