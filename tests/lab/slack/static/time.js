// Times as Slack words them, in the zone of the browser.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const clockSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const short = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const long = new Intl.DateTimeFormat(undefined, { weekday: "long", year: "numeric", month: "long", day: "numeric" });

export const moment = (seconds) => new Date(Number(seconds) * 1000);
export const shortTime = (seconds) => clock.format(moment(seconds));
export const fullTime = (seconds) => `${long.format(moment(seconds))} at ${clockSeconds.format(moment(seconds))}`;

function number(date) {
  const two = (value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function dayName(seconds) {
  const date = moment(seconds);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  return long.format(date);
}

export function ago(seconds) {
  const minutes = Math.round((Date.now() / 1000 - Number(seconds)) / 60);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} ${minutes === 1 ? "minute" : "minutes"} ago`;
  if (minutes < 1440) return `${Math.round(minutes / 60)} h ago`;
  return dayName(seconds);
}

// The format string of <!date^…>; a token that is not known stays as it is.
export function slackDate(seconds, format) {
  const date = moment(seconds);
  const pretty = (plain) => {
    const name = dayName(seconds);
    return name === "Today" || name === "Yesterday" ? name.toLowerCase() : plain;
  };
  const tokens = {
    date_num: () => number(date),
    date: () => long.format(date),
    date_short: () => short.format(date),
    date_long: () => long.format(date),
    date_pretty: () => pretty(long.format(date)),
    date_short_pretty: () => pretty(short.format(date)),
    date_long_pretty: () => pretty(long.format(date)),
    time: () => clock.format(date),
    time_secs: () => clockSeconds.format(date),
    ago: () => ago(seconds),
  };
  return format.replace(/\{(\w+)\}/g, (whole, name) => tokens[name]?.() ?? whole);
}
