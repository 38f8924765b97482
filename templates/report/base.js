"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// --- elements; a text never becomes markup, but for the HTML that `markdown_html.py` makes of answers

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const plural = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

// --- figures, in the words of the comment: unknown is a dash

const unknown = (value) => value === undefined || value === null;
/** The nearest whole number; nothing is rounded up to a multiple of 5, which may be a threshold, or
 *  to `threshold`. */
function nearest(value, threshold = 0) {
  const exact = Number(value.toFixed(6));
  const whole = Math.round(exact);
  return whole > exact && (whole % 5 === 0 || (exact < threshold && whole >= threshold)) ? whole - 1 : whole;
}
const score = (value, threshold = 0) => (unknown(value) ? "–" : (nearest(value * 100, threshold * 100) / 100).toFixed(2));
function cost(usd) {
  if (unknown(usd)) return "–";
  if (usd > 0 && usd < 0.0001) return "<$0.0001";
  return usd >= 1 ? `$${usd.toFixed(2)}` : `$${usd.toFixed(4)}`;
}
function time(milliseconds) {
  if (unknown(milliseconds)) return "–";
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
}
const count = (value) => (unknown(value) ? "–" : value.toLocaleString("en"));
