// Elements without innerHTML: text only ever becomes text.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function byId(id) {
  return document.getElementById(id);
}

// Draws a keyed list and leaves nodes alone whose item did not change, so that focus and scroll survive.
export function keyed(parent, items, keyOf, draw) {
  const old = new Map();
  for (const node of parent.children) old.set(node.dataset.key, node);
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    const signature = JSON.stringify(item);
    let node = old.get(key);
    old.delete(key);
    if (!node || node.drawn !== signature) {
      const fresh = draw(item);
      fresh.dataset.key = key;
      fresh.drawn = signature;
      if (node) {
        const hadFocus = node.contains(document.activeElement);
        if (place === node) place = fresh;
        node.replaceWith(fresh);
        if (hadFocus) fresh.focus({ preventScroll: true });
        node = fresh;
      } else {
        node = fresh;
      }
    }
    if (node !== place) parent.insertBefore(node, place);
    else place = place.nextElementSibling;
  }
  for (const node of old.values()) node.remove();
}
