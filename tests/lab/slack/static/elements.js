// Things to click, choose and type in. `act(element, block, value, button)` is what a click means where it
// stands; the button looks busy while the app has not answered.
import { el } from "./dom.js";
import { withEmoji } from "./emoji.js";
import { mrkdwn } from "./mrkdwn.js";

export const textNodes = (text, names) => (text.type === "mrkdwn" ? mrkdwn(text.text, names) : withEmoji(text.text));

const marks = (element, block) => ({ "data-action-id": element.action_id, "data-block-id": block.block_id });

export function button(element, block, act) {
  const style = element.style ? ` ${element.style}` : "";
  const props = { type: "button", class: `button${style}`, "aria-label": element.accessibility_label, ...marks(element, block) };
  const node = el("button", props, withEmoji(element.text.text));
  node.addEventListener("click", () => {
    if (node.getAttribute("aria-disabled") === "true") return;
    if (element.url && /^https?:\/\//i.test(element.url)) window.open(element.url, "_blank", "noopener,noreferrer");
    act(element, block, undefined, node);
  });
  return node;
}

const flat = (element) => element.options ?? [];

function optionNodes(element, chosen) {
  const one = (option) => el("option", { value: option.value, selected: chosen.includes(option.value), text: option.text.text });
  const groups = (element.option_groups ?? []).map((group) => el("optgroup", { label: group.label.text }, group.options.map(one)));
  return [...flat(element).map(one), ...groups];
}

const initial = (element) => [...(element.initial_options ?? []), element.initial_option].filter(Boolean).map((option) => option.value);

function select(element, block, names, labelled) {
  const people = element.type === "users_select" ? names.people().map((person) => ({ value: person.id, text: { text: person.name } })) : null;
  const full = people ? { ...element, options: people } : element;
  const chosen = element.initial_user ? [element.initial_user] : initial(element);
  const many = element.type === "multi_static_select";
  const word = element.placeholder?.text ?? (element.type === "overflow" ? "More actions" : "Choose an option");
  const first = many ? null : el("option", { value: "", text: word, disabled: labelled, selected: chosen.length === 0, hidden: labelled });
  const props = { class: "select", multiple: many, "aria-label": labelled ? undefined : word, ...marks(element, block) };
  return el("select", props, first, optionNodes(full, chosen));
}

function group(element, block, names, kind) {
  const chosen = initial(element);
  const name = `${block.block_id}-${element.action_id}`;
  return el("div", { class: "options", role: kind === "radio" ? "radiogroup" : "group", ...marks(element, block) },
    flat(element).map((option) =>
      el("label", { class: "option" },
        el("input", { type: kind, name, value: option.value, checked: chosen.includes(option.value) }),
        el("span", {}, textNodes(option.text, names),
          option.description && el("small", {}, textNodes(option.description, names))))));
}

function typed(element, block) {
  const props = {
    class: "input",
    placeholder: element.placeholder?.text,
    maxlength: element.max_length,
    ...marks(element, block),
  };
  if (element.multiline) return el("textarea", { ...props, rows: 4, text: element.initial_value ?? "" });
  const kind = { datepicker: "date", timepicker: "time", datetimepicker: "datetime-local" }[element.type] ?? "text";
  return el("input", { ...props, type: kind, value: element.initial_value ?? element.initial_date ?? element.initial_time });
}

// An element by itself, without meaning yet; `labelled` says that a label stands beside it.
export function control(element, block, names, labelled) {
  if (element.type === "radio_buttons") return group(element, block, names, "radio");
  if (element.type === "checkboxes") return group(element, block, names, "checkbox");
  if (element.type.endsWith("_select") || element.type === "overflow") return select(element, block, names, labelled);
  return typed(element, block);
}

// What is chosen or typed in a control now: a string, or a list where several may be chosen.
export function valueOf(node, element) {
  if (element.type === "radio_buttons") return node.querySelector("input:checked")?.value ?? null;
  if (element.type === "checkboxes") return [...node.querySelectorAll("input:checked")].map((box) => box.value);
  if (element.type === "multi_static_select") return [...node.selectedOptions].map((option) => option.value);
  if (element.type === "datetimepicker") return node.value ? Math.floor(new Date(node.value).getTime() / 1000) : null;
  return node.value || null;
}

// An element that sends a click as soon as something is chosen in it.
export function interactive(element, block, names, act) {
  if (element.type === "button") return button(element, block, act);
  const node = control(element, block, names, false);
  node.addEventListener("change", async () => {
    const value = valueOf(node, element);
    if (value === null) return;
    await act(element, block, value);
    if (element.type === "overflow") node.value = "";
  });
  return node;
}
