// rich_text and markdown blocks.
import { el } from "./dom.js";
import { emoji, withEmoji } from "./emoji.js";
import { dateNode, link, mention } from "./mrkdwn.js";

const STYLE = [["code", "code"], ["bold", "strong"], ["italic", "em"], ["strike", "s"], ["underline", "u"]];

function styled(nodes, style = {}) {
  return STYLE.reduce((inner, [name, tag]) => (style[name] ? [el(tag, {}, inner)] : inner), nodes);
}

function piece(item, names) {
  const nodes = {
    text: () => withEmoji(item.text),
    link: () => [link(item.url, item.text)],
    emoji: () => [emoji(item.name)],
    user: () => [mention(`@${names.user(item.user_id)}`)],
    channel: () => [mention(`#${names.channel(item.channel_id)}`)],
    usergroup: () => [mention(`@${item.usergroup_id}`)],
    broadcast: () => [mention(`@${item.range}`)],
    date: () => [dateNode(item.timestamp, item.format, item.fallback, item.url)],
  }[item.type];
  return styled(nodes ? nodes() : [], item.style);
}

const verbatim = (item) => item.text ?? item.url ?? (item.type === "emoji" ? `:${item.name}:` : "");

function part(item, names) {
  const inner = () => item.elements.map((child) => piece(child, names));
  if (item.type === "rich_text_preformatted") {
    return el("pre", { tabindex: "0" }, el("code", { text: item.elements.map(verbatim).join("") }));
  }
  if (item.type === "rich_text_quote") return el("blockquote", {}, inner());
  if (item.type === "rich_text_list") {
    const tag = item.style === "ordered" ? "ol" : "ul";
    return el(tag, { class: `indent-${item.indent ?? 0}` }, item.elements.map((row) => el("li", {}, row.elements.map((child) => piece(child, names)))));
  }
  return el("p", { class: "rich" }, inner());
}

export const richText = (block, names) => el("div", { class: "block rich-text" }, block.elements.map((item) => part(item, names)));

// A small part of Markdown: headings, lists, fences, quotes, bold, italic, code, links.
export function markdown(text) {
  const out = el("div", { class: "block rich-text" });
  text.split(/^```.*\n([\s\S]*?)^```\s*$/m).forEach((chunk, index) => {
    if (index % 2 === 1) out.append(el("pre", { tabindex: "0" }, el("code", { text: chunk })));
    else out.append(...lines(chunk));
  });
  return out;
}

function lines(chunk) {
  const out = [];
  let list = null;
  for (const line of chunk.split("\n")) {
    const bullet = /^\s*(?:[-*]|(\d+)\.)\s+(.*)/.exec(line);
    if (bullet) {
      if (!list) out.push((list = el(bullet[1] ? "ol" : "ul")));
      list.append(el("li", {}, spans(bullet[2])));
      continue;
    }
    list = null;
    const heading = /^#{1,6}\s+(.*)/.exec(line);
    const quote = /^>\s?(.*)/.exec(line);
    if (heading) out.push(el("p", { class: "rich" }, el("strong", {}, spans(heading[1]))));
    else if (quote) out.push(el("blockquote", {}, spans(quote[1])));
    else if (line.trim()) out.push(el("p", { class: "rich" }, spans(line)));
  }
  return out;
}

function spans(text) {
  const found = /`([^`]+)`|\*\*(.+?)\*\*|\*(.+?)\*|\[([^\]]+)\]\(([^)\s]+)\)/.exec(text);
  if (!found) return withEmoji(text);
  const [whole, code, bold, italic, label, url] = found;
  const node = code ? el("code", { text: code }) : bold ? el("strong", {}, spans(bold)) : italic ? el("em", {}, spans(italic)) : link(url, label);
  return [...withEmoji(text.slice(0, found.index)), node, ...spans(text.slice(found.index + whole.length))];
}
