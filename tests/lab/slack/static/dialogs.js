// Dialogs: "are you sure", modals of the app, and (lab only) what a message said before.
import { drawBlocks } from "./blocks.js";
import { el } from "./dom.js";
import { textNodes, valueOf } from "./elements.js";
import { fullTime } from "./time.js";

const cross = (label, onclick, testid) =>
  el("button", { type: "button", class: "icon-button close", "aria-label": label, "data-testid": testid, onclick });

let count = 0;

function frame(title, testid, kind) {
  const id = `dialog-${(count += 1)}`;
  const heading = el("h2", { id }, title);
  return { heading, dialog: el("dialog", { class: kind, "aria-labelledby": id, "data-testid": testid }) };
}

// Closed before it goes, so that the focus returns to where the person was.
function leave(dialog) {
  dialog.close();
  dialog.remove();
}

// Resolves to whether the person agreed.
export function confirmed(confirm, names) {
  if (!confirm) return Promise.resolve(true);
  return new Promise((resolve) => {
    const { dialog, heading } = frame(confirm.title.text, "confirm", "confirm");
    const end = (answer) => () => {
      leave(dialog);
      resolve(answer);
    };
    const ok = el("button", {
      type: "button", class: `button ${confirm.style === "danger" ? "danger" : "primary"}`, "data-testid": "confirm-ok",
      text: confirm.confirm?.text ?? "Yes", onclick: end(true),
    });
    const cancel = el("button", { type: "button", class: "button", "data-testid": "confirm-cancel", text: confirm.deny?.text ?? "Cancel", onclick: end(false) });
    dialog.append(
      el("header", {}, heading, cross("Close", end(false))),
      el("div", { class: "dialog-body text" }, textNodes(confirm.text, names)),
      el("footer", {}, cancel, ok));
    dialog.addEventListener("cancel", end(false));
    document.body.append(dialog);
    dialog.showModal();
    ok.focus();
  });
}

// The one modal that is open for the acting user; drawn again only when the app changed it.
export class Modal {
  constructor(names, act, submit, close) {
    Object.assign(this, { names, act, submit, close, view: null, dialog: null });
  }

  show(view) {
    if (view?.hash === this.view?.hash) return;
    const kept = this.view && view && this.view.id === view.id ? this.values() : {};
    if (this.dialog) leave(this.dialog);
    this.dialog = null;
    this.view = view;
    if (view) this.draw(view, kept);
  }

  draw(view, kept) {
    const { dialog, heading } = frame(view.title.text, "modal", "modal");
    const form = el("form", { novalidate: true, method: "dialog" });
    const cancelled = () => this.close();
    const cancel = el("button", { type: "button", class: "button", "data-testid": "modal-close", text: view.close?.text ?? "Cancel", onclick: cancelled });
    const send = view.submit && el("button", { type: "submit", class: "button primary", "data-testid": "modal-submit", text: view.submit.text });
    this.problem = el("p", { class: "dialog-problem", role: "alert", "data-testid": "modal-problem", hidden: true });
    form.append(
      el("header", {}, heading, cross("Close", cancelled)),
      el("div", { class: "dialog-body" }, drawBlocks(view.blocks, this.names, this.act), this.problem),
      el("footer", {}, cancel, send));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send(send);
    });
    dialog.append(form);
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      cancelled();
    });
    this.dialog = dialog;
    this.restore(kept);
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector(".dialog-body :is(input, textarea, select)")?.focus();
  }

  inputs() {
    return (this.view?.blocks ?? []).filter((block) => block.type === "input");
  }

  field(block) {
    return this.dialog.querySelector(`#${CSS.escape(`field-${block.block_id}`)}`);
  }

  values() {
    if (!this.dialog) return {};
    return Object.fromEntries(this.inputs().map((block) => [block.block_id, valueOf(this.field(block), block.element)]));
  }

  restore(kept) {
    for (const block of this.inputs()) {
      const node = this.field(block);
      if (typeof kept[block.block_id] === "string" && "value" in node) node.value = kept[block.block_id];
    }
  }

  async send(button) {
    if (button?.getAttribute("aria-disabled") === "true") return;
    button?.setAttribute("aria-disabled", "true");
    this.complain({ acked: true, errors: {} });
    const outcome = await this.submit(this.view, this.values());
    button?.removeAttribute("aria-disabled");
    if (this.dialog) this.complain(outcome);
  }

  complain(outcome) {
    const errors = outcome.errors ?? {};
    for (const block of this.inputs()) {
      const line = this.dialog.querySelector(`#${CSS.escape(`field-${block.block_id}-error`)}`);
      line.textContent = errors[block.block_id] ?? "";
      line.hidden = !errors[block.block_id];
      this.field(block).setAttribute("aria-invalid", String(Boolean(errors[block.block_id])));
    }
    const failed = !outcome.acked && Object.keys(errors).length === 0;
    this.problem.textContent = failed ? `We had some trouble connecting (${outcome.why}). Try again?` : "";
    this.problem.hidden = !failed;
    this.dialog.querySelector("[aria-invalid=true]")?.focus();
  }
}

// Lab only: earlier versions with live buttons, as a person with a stale window would have them.
export function showEarlier(earlier, names, actOn) {
  const { dialog, heading } = frame("Earlier versions", "earlier", "modal earlier");
  const end = () => leave(dialog);
  const body = earlier.map((version) =>
    el("article", { class: "earlier-version", "data-testid": "earlier-version", "data-version": String(version.index) },
      el("p", { class: "hint", text: `Version ${version.index + 1}, from ${fullTime(version.at)}` }),
      version.blocks.length ? drawBlocks(version.blocks, names, actOn(version.index)) : el("p", { class: "text", text: version.text })));
  dialog.append(
    el("header", {}, heading, el("span", { class: "lab-tag", text: "Lab control" }), cross("Close", end, "earlier-close")),
    el("div", { class: "dialog-body" }, el("p", { class: "hint", text: "Buttons still work here: this is what a click in a stale window sends." }), body));
  dialog.addEventListener("cancel", end);
  document.body.append(dialog);
  dialog.showModal();
}
