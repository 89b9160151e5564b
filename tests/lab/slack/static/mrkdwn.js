// Slack's mrkdwn as elements. Three entities are undone, at the leaves and nowhere else.
import { el } from "./dom.js";
import { withEmoji } from "./emoji.js";
import { fullTime, moment, slackDate } from "./time.js";

const STYLES = { "*": "strong", _: "em", "~": "s" };
const WORD = /[\p{L}\p{N}]/u;

export const unescaped = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

const leaf = (text) => withEmoji(unescaped(text));

export function link(url, label) {
  const address = unescaped(url);
  if (!/^(https?:\/\/|mailto:)/i.test(address)) return el("span", {}, label ? leaf(label) : leaf(url));
  const shown = label ? leaf(label) : address;
  if (address.startsWith(`${location.origin}/archives/`)) return el("a", { href: address }, shown);
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, shown);
}

export const mention = (text) => el("span", { class: "mention", text });

export function dateNode(seconds, format, fallback, url) {
  if (!/^\d{1,12}$/.test(String(seconds))) return document.createTextNode(fallback ?? "");
  const shown = slackDate(seconds, format);
  const time = el("time", { datetime: moment(seconds).toISOString(), title: fallback || fullTime(seconds), text: shown });
  return url && /^https?:\/\//i.test(url) ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, time) : time;
}

// What stands between < and >.
function angle(inner, names) {
  const [head, label] = inner.split(/\|(.*)/s);
  if (head.startsWith("@")) return mention(`@${names.user(head.slice(1))}`);
  if (head.startsWith("#")) return mention(`#${names.channel(head.slice(1))}`);
  if (head.startsWith("!date^")) {
    const [, seconds, format, url] = head.split("^");
    return dateNode(seconds, unescaped(format ?? ""), label && unescaped(label), url && unescaped(url));
  }
  if (head.startsWith("!subteam^")) return mention(unescaped(label ?? `@${head.slice(9)}`));
  if (head.startsWith("!")) return mention(`@${unescaped(label ?? head.slice(1))}`);
  return link(head, label);
}

function closing(text, from) {
  const sign = text[from];
  if (WORD.test(text[from - 1] ?? "") || /\s/.test(text[from + 1] ?? " ") || text[from + 1] === sign) return -1;
  for (let at = from + 2; at < text.length && text[at] !== "\n"; at += 1) {
    if (text[at] === sign && !/\s/.test(text[at - 1]) && !WORD.test(text[at + 1] ?? "")) return at;
  }
  return -1;
}

function inline(text, names) {
  const out = [];
  let plain = "";
  const flush = () => {
    if (plain) out.push(...leaf(plain));
    plain = "";
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    const end = sign === "`" ? text.indexOf("`", at + 1) : sign === "<" ? text.indexOf(">", at + 1) : STYLES[sign] ? closing(text, at) : -1;
    if (end <= at + 1) {
      plain += sign;
      continue;
    }
    flush();
    const within = text.slice(at + 1, end);
    if (sign === "`") out.push(el("code", { text: unescaped(within) }));
    else if (sign === "<") out.push(angle(within, names));
    else out.push(el(STYLES[sign], {}, inline(within, names)));
    at = end;
  }
  flush();
  return out;
}

function paragraphs(text, names) {
  const out = [];
  let quote = null;
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const quoted = /^(?:&gt;|>) ?/.exec(line);
    if (quoted) {
      if (quote) quote.append(el("br"));
      else out.push((quote = el("blockquote")));
      quote.append(...inline(line.slice(quoted[0].length), names));
      return;
    }
    const afterQuote = quote !== null;
    quote = null;
    if (index > 0 && !afterQuote) out.push(el("br"));
    out.push(...inline(line, names));
  });
  return out;
}

export function mrkdwn(text, names) {
  return text.split(/```([\s\S]*?)```/).flatMap((part, index) => {
    if (index % 2 === 1) return [el("pre", { tabindex: "0" }, el("code", { text: unescaped(part.replace(/^\n/, "")) }))];
    const trimmed = part.replace(/^\n/, index > 0 ? "" : "\n").replace(/\n$/, "");
    return trimmed ? paragraphs(trimmed, names) : [];
  });
}
