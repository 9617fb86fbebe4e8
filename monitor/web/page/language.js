"use strict";
// The page's own sentences in the reader's language (monitor/language). They are recognised after they were
// filled in, and only as a whole; what a template's holes may hold is in its pattern. English has no catalogue.
const spoken = JSON.parse(document.getElementById("catalogue").textContent);
const words = new Map(Object.entries(spoken.words));
const templates = spoken.templates.map(([pattern, parts]) => [new RegExp(`^(?:${pattern})$`, "s"), parts]);
const alreadySaid = new Map();
const MOST_SAID = 2000;

// A label or a state, which the caller knows to be ours; several are separated by commas.
function word(text) {
  if (words.has(text)) return words.get(text);
  const known = sentence(text);
  return known !== null ? known : text.includes(", ") ? text.split(", ").map(word).join(", ") : text;
}

// A sentence; a single word stays, it may be somebody's name for something.
function said(text) {
  if (!templates.length) return text;
  if (alreadySaid.size > MOST_SAID) alreadySaid.clear();
  if (!alreadySaid.has(text)) alreadySaid.set(text, found(text));
  return alreadySaid.get(text);
}

function found(text) {
  const bare = text.trim();
  if (!bare.includes(" ")) return text;
  const known = words.has(bare) ? words.get(bare) : sentence(bare);
  return known === null ? text : text.replace(bare, () => known);
}

function sentence(text) {
  for (const [pattern, parts] of templates) {
    const match = pattern.exec(text);
    if (match) return parts.map(([literal, hole, kind]) => literal + (hole === null ? "" : filled(kind, match[hole + 1]))).join("");
  }
  return null;
}

const filled = (kind, value) => (kind === "w" || kind === "t" ? word(value) : kind === "x" ? "" : value);
