"use strict";
// Turns the current page into the wanted one without touching what did not change: selection, open lists and
// focus stay. Children are matched by data-key, otherwise by position.

// Set by the reader, or by a script that knows the page is one.
const KEPT = ["open", "tabindex"];

function patch(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return undefined;
  }
  for (const { name, value } of fresh.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== fresh.style.cssText) old.style.cssText = fresh.style.cssText; // the only way the policy allows
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !KEPT.includes(name)) old.removeAttribute(name);
  patchChildren(old, [...fresh.childNodes]);
  return undefined;
}

function patchChildren(parent, fresh) {
  const key = (node) => (node.dataset ? node.dataset.key : undefined);
  const known = new Map([...parent.childNodes].filter(key).map((node) => [key(node), node]));
  fresh.forEach((node, at) => {
    const here = parent.childNodes[at];
    const old = key(node) ? known.get(key(node)) : here && !key(here) ? here : undefined;
    if (!old) return parent.insertBefore(node, here || null);
    if (old !== here) parent.insertBefore(old, here || null);
    return patch(old, node);
  });
  while (parent.childNodes.length > fresh.length) parent.lastChild.remove();
}
