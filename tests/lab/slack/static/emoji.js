// Emoji by name. The signs that tools use most are drawn from a sprite of our own (a bare machine has no
// emoji font); the rest are characters; a name that is not here stays as it was written, as in Slack.
import { el } from "./dom.js";

const SPRITE = {
  red_circle: "🔴", large_orange_circle: "🟠", large_yellow_circle: "🟡", large_green_circle: "🟢",
  large_blue_circle: "🔵", large_purple_circle: "🟣", white_circle: "⚪", black_circle: "⚫", white_check_mark: "✅", x: "❌",
  no_entry: "⛔", warning: "⚠", rotating_light: "🚨", hourglass_flowing_sand: "⏳", wrench: "🔧",
  arrows_counterclockwise: "🔄", zap: "⚡", lock: "🔒", information_source: "ℹ", question: "❓", eyes: "👀",
  bell: "🔔", robot_face: "🤖", tada: "🎉", clock3: "🕒", mag: "🔍", memo: "📝", fire: "🔥", pause_button: "⏸",
  computer: "💻", link: "🔗", white_large_square: "⬜", large_green_square: "🟩", large_red_square: "🟥",
  large_yellow_square: "🟨", raised_hand: "✋", house: "🏠",
};
const SAME = {
  large_red_circle: "red_circle", orange_circle: "large_orange_circle", yellow_circle: "large_yellow_circle",
  green_circle: "large_green_circle", blue_circle: "large_blue_circle", purple_circle: "large_purple_circle", large_white_circle: "white_circle",
  heavy_check_mark: "white_check_mark", ballot_box_with_check: "white_check_mark", cross_mark: "x",
  negative_squared_cross_mark: "x", octagonal_sign: "no_entry", no_entry_sign: "no_entry", stop_sign: "no_entry",
  hourglass: "hourglass_flowing_sand", hammer_and_wrench: "wrench", hammer: "wrench", tools: "wrench", gear: "wrench",
  repeat: "arrows_counterclockwise", arrows_clockwise: "arrows_counterclockwise", high_voltage: "zap",
  closed_lock_with_key: "lock", grey_question: "question", bulb: "information_source", no_bell: "bell",
  hand: "raised_hand", clock1: "clock3", stopwatch: "clock3", alarm_clock: "clock3", timer_clock: "clock3",
  mag_right: "mag", pencil: "memo", clipboard: "memo", desktop_computer: "computer", police_car_light: "rotating_light",
  double_vertical_bar: "pause_button", construction: "warning", siren: "rotating_light", green_square: "large_green_square",
};
const PLAIN = { arrow_right: "→", arrow_up: "↑", arrow_down: "↓", small_blue_diamond: "◆", star: "★", heavy_minus_sign: "−" };

const BY_CHARACTER = new Map(Object.entries(SPRITE).map(([name, sign]) => [sign, name]));
const CHARACTERS = new RegExp(`(?:${Object.values(SPRITE).join("|")})\\ufe0f?`, "u");
const NAME = /:([a-z0-9_+'-]+):/;
const FIRST = new RegExp(`${NAME.source}|(${CHARACTERS.source})`, "gu");
const SVG = "http://www.w3.org/2000/svg";

function picture(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "emoji");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${name.replaceAll("_", " ")}`);
  svg.setAttribute("viewBox", "0 0 24 24");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `/_lab/static/emoji.svg#${name}`);
  svg.append(use);
  return svg;
}

export function emoji(name) {
  const known = SAME[name] ?? name;
  if (SPRITE[known]) return picture(known);
  if (PLAIN[known]) return el("span", { title: `:${name}:`, text: PLAIN[known] });
  return document.createTextNode(`:${name}:`);
}

// Plain text with its emoji, as a list of nodes.
export function withEmoji(text) {
  const out = [];
  let from = 0;
  for (const match of text.matchAll(FIRST)) {
    if (match.index > from) out.push(document.createTextNode(text.slice(from, match.index)));
    const sign = match[2]?.replace("\ufe0f", "");
    out.push(emoji(match[1] ?? BY_CHARACTER.get(sign)));
    from = match.index + match[0].length;
  }
  if (from < text.length) out.push(document.createTextNode(text.slice(from)));
  return out;
}
