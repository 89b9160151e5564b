// Block Kit as elements.
import { el } from "./dom.js";
import { withEmoji } from "./emoji.js";
import { control, interactive, textNodes } from "./elements.js";
import { markdown, richText } from "./richtext.js";

const picture = (alt) => el("span", { class: "picture", role: "img", "aria-label": alt, text: "▧" });

function accessory(element, block, names, act) {
  if (!element) return null;
  if (element.type === "image") return picture(element.alt_text);
  return el("div", { class: "accessory" }, interactive(element, block, names, act));
}

function section(block, names, act) {
  return el("div", { class: "block section" },
    el("div", { class: "section-main" },
      block.text && el("div", { class: "text" }, textNodes(block.text, names)),
      block.fields && el("div", { class: "fields" }, block.fields.map((field) => el("div", { class: "text field" }, textNodes(field, names))))),
    accessory(block.accessory, block, names, act));
}

function context(block, names) {
  const items = block.elements.map((item) =>
    item.type === "image" ? picture(item.alt_text) : el("span", { class: "text" }, textNodes(item, names)));
  return el("div", { class: "block context" }, items);
}

function input(block, names) {
  const node = control(block.element, block, names, true);
  const id = `field-${block.block_id}`;
  const hint = block.hint && el("p", { class: "hint", id: `${id}-hint`, text: block.hint.text });
  const error = el("p", { class: "field-error", id: `${id}-error`, "data-testid": `error-${block.block_id}`, role: "alert", hidden: true });
  node.id = id;
  node.dataset.testid = `input-${block.block_id}`;
  node.setAttribute("aria-describedby", `${id}-error${hint ? ` ${id}-hint` : ""}`);
  const grouped = node.tagName === "DIV";
  const words = [block.label.text, block.optional && el("span", { class: "optional", text: " (optional)" })];
  const label = grouped ? el("span", { class: "label", id: `${id}-label` }, words) : el("label", { class: "label", for: id }, words);
  if (grouped) node.setAttribute("aria-labelledby", `${id}-label`);
  return el("div", { class: "block field-row" }, label, node, hint, error);
}

const DRAW = {
  section,
  context,
  input,
  header: (block) => el("div", { class: "block heading", role: "heading", "aria-level": "3" }, withEmoji(block.text.text)),
  divider: () => el("hr", { class: "block" }),
  actions: (block, names, act) =>
    el("div", { class: "block actions" }, block.elements.map((element) => interactive(element, block, names, act))),
  rich_text: richText,
  markdown: (block) => markdown(block.text),
  image: (block) => el("div", { class: "block" }, picture(block.alt_text)),
};

export function drawBlocks(blocks, names, act) {
  return blocks.map((block) => DRAW[block.type]?.(block, names, act) ?? el("div", { class: "block", text: `[${block.type}]` }));
}
