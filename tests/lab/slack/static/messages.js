// One message, and the list of them.
import { drawBlocks } from "./blocks.js";
import { showEarlier } from "./dialogs.js";
import { el, keyed } from "./dom.js";
import { emoji } from "./emoji.js";
import { mrkdwn } from "./mrkdwn.js";
import { ago, dayName, fullTime, shortTime } from "./time.js";

export function avatar(name, isApp, small) {
  const initials = name.split(/\s+/).map((word) => word[0] ?? "").join("").slice(0, 2).toUpperCase();
  const hue = [...name].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % 6;
  return el("span", { class: `avatar ${isApp ? "app" : `hue-${hue}`}${small ? " small" : ""}`, "aria-hidden": "true", text: isApp ? "" : initials });
}

function who(message, names) {
  return el("div", { class: "who" },
    el("strong", { text: names.user(message.user) }),
    names.isApp(message.user) && el("span", { class: "badge", text: "APP" }),
    el("time", { class: "quiet", datetime: new Date(Number(message.ts) * 1000).toISOString(), title: fullTime(message.ts), text: shortTime(message.ts) }));
}

function edited(message, tools) {
  if (!message.edited) return null;
  const title = `Edited ${fullTime(message.edited.ts)}. Lab control: see earlier versions`;
  const open = () => showEarlier(message.earlier, tools.names, (version) => tools.act({ kind: "message", channel: tools.channel, ts: message.ts, version }));
  return el("button", { type: "button", class: "edited", "data-testid": "edited", title, text: "(edited)", onclick: open });
}

function body(message, tools) {
  const act = tools.act({ kind: "message", channel: tools.channel, ts: message.ts });
  if (message.subtype === "tombstone") return [el("p", { class: "quiet", text: "This message was deleted." })];
  if (message.blocks) return [...drawBlocks(message.blocks, tools.names, act), edited(message, tools)];
  return [el("div", { class: "text block" }, mrkdwn(message.text, tools.names), " ", edited(message, tools))];
}

function reactions(message, names) {
  if (!message.reactions) return null;
  return el("div", { class: "reactions" }, message.reactions.map((one) =>
    el("span", { class: "reaction", title: one.users.map(names.user).join(", ") }, emoji(one.name), ` ${one.count}`)));
}

function threadBar(message, tools) {
  const replies = message.replies ?? [];
  if (!replies.length || !tools.openThread) return null;
  const people = [...new Set(replies.map((reply) => reply.user))].slice(0, 3);
  return el("button", { type: "button", class: "thread-bar", "data-testid": "open-thread", onclick: () => tools.openThread(message.ts) },
    people.map((user) => avatar(tools.names.user(user), tools.names.isApp(user), true)),
    el("strong", { text: counted(replies.length) }),
    el("span", { class: "quiet", text: `Last reply ${ago(replies.at(-1).ts)}` }));
}

export function drawMessage(message, tools) {
  const mine = message.is_ephemeral;
  const replyIn = !mine && tools.openThread && el("button", {
    type: "button", class: "icon-button reply", "aria-label": "Reply in thread", title: "Reply in thread", "data-testid": "reply", onclick: () => tools.openThread(message.ts),
  });
  const failure = tools.failures.get(message.ts);
  return el("article", {
    class: `message${mine ? " only-you" : ""}`, tabindex: "-1", "data-testid": mine ? "ephemeral" : "message", "data-ts": message.ts, "aria-label": `Message from ${tools.names.user(message.user)}`,
  },
    mine && el("p", { class: "only-you-note", text: "Only visible to you" }),
    avatar(tools.names.user(message.user), tools.names.isApp(message.user)),
    el("div", { class: "message-main" },
      who(message, tools.names),
      el("div", { class: "body" }, body(message, tools)),
      failure && el("p", { class: "failure", role: "alert", "data-testid": "failure", text: failure }),
      reactions(message, tools.names),
      threadBar(message, tools)),
    replyIn);
}

const counted = (count) => `${count} ${count === 1 ? "reply" : "replies"}`;

// Messages with a line for every new day; in a thread, one line that counts the replies.
function rowsOf(messages, tools) {
  const rows = [];
  let last = "";
  messages.forEach((message, index) => {
    const day = dayName(message.ts);
    const line = tools.openThread ? (day !== last ? day : "") : index === 1 ? counted(messages.length - 1) : "";
    if (line) rows.push({ line, key: `line-${message.ts}` });
    last = day;
    rows.push({ message, key: message.ts, failure: tools.failures.get(message.ts) });
  });
  return rows;
}

export function drawList(parent, messages, tools) {
  const moved = parent.dataset.place !== tools.place;
  parent.dataset.place = tools.place;
  if (moved) parent.replaceChildren();
  const low = moved || parent.scrollHeight - parent.scrollTop - parent.clientHeight < 60;
  keyed(parent, rowsOf(messages, tools), (row) => row.key, (row) =>
    row.line ? el("div", { class: "day", role: "separator" }, el("span", { text: row.line })) : drawMessage(row.message, tools));
  if (low) parent.scrollTop = parent.scrollHeight;
}
