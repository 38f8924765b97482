// --- what two lists, and two texts, have in common

const LONGEST = 4_000_000; // pairs of items that are compared
const CONTEXT = 100; // characters of equal text that stay beside a difference

/** The runs of two lists in their order, as `{ same, base, head }` with the items of each side.
 *  Between equal starts and ends, lists that are too long to compare are one run. */
function align(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const runs = [];
  const add = (same, base, head) => {
    if (!base.length && !head.length) return;
    if (runs.at(-1)?.same !== same) runs.push({ same, base: [], head: [] });
    runs.at(-1).base.push(...base);
    runs.at(-1).head.push(...head);
  };
  add(true, a.slice(0, start), b.slice(0, start));
  alignMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end), add);
  add(true, a.slice(a.length - end), b.slice(b.length - end));
  return runs;
}

function alignMiddle(a, b, add) {
  if (a.length * b.length > LONGEST) {
    add(false, a, b);
    return;
  }
  // The length of the longest common subsequence of the rest of both, from each pair of items on.
  const lengths = new Uint32Array((a.length + 1) * (b.length + 1));
  const at = (row, column) => lengths[row * (b.length + 1) + column];
  for (let row = a.length - 1; row >= 0; row -= 1)
    for (let column = b.length - 1; column >= 0; column -= 1)
      lengths[row * (b.length + 1) + column] = a[row] === b[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
  let [row, column] = [0, 0];
  while (row < a.length || column < b.length) {
    if (row < a.length && column < b.length && a[row] === b[column]) add(true, [a[row++]], [b[column++]]);
    else if (column === b.length || (row < a.length && at(row + 1, column) >= at(row, column + 1))) add(false, [a[row++]], []);
    else add(false, [], [b[column++]]);
  }
}

const lines = (text) => text.match(/[^\n]*\n|[^\n]+/g) ?? [];
const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

/** The runs of two texts by their lines, and by the words of lines that differ, each with its
 *  number in the page; a space between two differing words differs too. */
function alignTexts(base, head) {
  const joined = (run) => ({ same: run.same, base: run.base.join(""), head: run.head.join("") });
  const byLine = align(lines(base), lines(head)).map(joined);
  const runs = byLine.flatMap((run) => (run.same ? run : align(words(run.base), words(run.head)).map(joined)));
  const merged = [];
  runs.forEach((run, index) => {
    const same = run.same && (index === 0 || index === runs.length - 1 || run.base.trim() !== "");
    if (merged.at(-1)?.same === same) {
      merged.at(-1).base += run.base;
      merged.at(-1).head += run.head;
    } else merged.push({ ...run, same, number: (differences.last += 1) });
  });
  return merged;
}

// --- the differences of the test that is shown: marks with a number, in the order of the page

const differences = { last: 0, current: 0 };

const mark = (text, number) => element("mark", { "data-number": number }, text);

/** The text of one side: what differs is marked, long equal text is folded. */
function markedText(runs, side) {
  return runs.map((run, index) => {
    if (!run.same) return run[side] ? mark(run[side], run.number) : null;
    const before = index > 0 ? run.base.slice(0, CONTEXT).replace(/\S*$/, "") : "";
    const after = index < runs.length - 1 ? run.base.slice(-CONTEXT).replace(/^\S*\s/, "") : "";
    const hidden = run.base.slice(before.length, run.base.length - after.length);
    if (hidden.length < 2 * CONTEXT) return run.base;
    return [before, element("button", { class: "fold", "data-fold": run.number, onclick: () => unfold(run.number, hidden) }, `… (${count(hidden.length)} equal characters)`), after];
  });
}

function unfold(number, text) {
  for (const button of article.querySelectorAll(`[data-fold="${number}"]`)) button.replaceWith(text);
}

/** Shows the next difference, or the previous one. */
function goToDifference(step) {
  const numbers = [...new Set([...article.querySelectorAll("mark")].map((found) => Number(found.dataset.number)))].sort((a, b) => a - b);
  if (!numbers.length) return;
  const place = Math.max(0, Math.min(numbers.indexOf(differences.current) + step, numbers.length - 1));
  differences.current = numbers[place];
  for (const found of [...article.querySelectorAll("mark")].reverse()) {
    const isShown = Number(found.dataset.number) === differences.current;
    found.classList.toggle("current", isShown);
    if (!isShown) continue;
    for (let around = found.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
    found.scrollIntoView({ block: "center" });
  }
  article.querySelector("[role=status]").textContent = `difference ${place + 1} of ${numbers.length}`;
}
