// The box at the bottom: messages and slash commands.
import { el } from "./dom.js";

// `send(text)` resolves to {acked, why}.
export function composer(testid, send) {
  const box = el("textarea", { rows: 1, class: "composer-text", "data-testid": testid, "aria-label": "Message", autocomplete: "off", spellcheck: "false" });
  const go = el("button", { type: "submit", class: "send", "data-testid": `${testid}-send`, "aria-label": "Send message", disabled: true });
  const note = el("p", { class: "composer-note", role: "alert", "data-testid": `${testid}-note`, hidden: true });
  const hints = el("ul", { class: "hints", "aria-label": "Commands", hidden: true });
  const form = el("form", { class: "composer" }, hints, el("div", { class: "composer-box" }, box, go));
  let commands = [];

  const fit = () => {
    go.disabled = !box.value.trim();
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 160)}px`;
    const typed = box.value;
    const fitting = typed.startsWith("/") && !typed.includes(" ") ? commands.filter((name) => name.startsWith(typed)) : [];
    hints.hidden = fitting.length === 0;
    hints.replaceChildren(...fitting.map((name) =>
      el("li", {}, el("button", { type: "button", text: name, onclick: () => put(`${name} `) }))));
  };
  const put = (text) => {
    box.value = text;
    fit();
    box.focus();
  };
  box.addEventListener("input", fit);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (!text) return;
    put("");
    const outcome = await send(text);
    note.textContent = outcome.acked || text.startsWith("/") && !outcome.why.includes("valid") ? "" : outcome.why;
    note.hidden = !note.textContent;
  });
  const label = (words, names) => {
    commands = names;
    box.placeholder = words;
    box.setAttribute("aria-label", words);
  };
  return { node: el("div", {}, note, form), label };
}
