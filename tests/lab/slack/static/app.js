// The page: one acting user looks at one channel, perhaps at a thread, or at the app's home.
import { drawBlocks } from "./blocks.js";
import { composer } from "./composer.js";
import { Modal, confirmed } from "./dialogs.js";
import { byId, el, keyed } from "./dom.js";
import { lab } from "./lab.js";
import { avatar, drawList } from "./messages.js";

const HOME = "home";
const here = { user: "", channel: "", thread: "", home: false };
const failures = new Map();
const seen = new Map();
let state = null;
let drawnHome;

const names = {
  user: (id) => state.users[id]?.name ?? id,
  isApp: (id) => Boolean(state.users[id]?.isBot),
  channel: (id) => state.channels.find((channel) => channel.id === id)?.name ?? id,
  people: () => Object.entries(state.users).filter(([, user]) => !user.isBot).map(([id, user]) => ({ id, name: user.name })),
};

// What a click does in a place: ask, send, and say it when the app did not answer.
const actIn = (place) => async (element, block, value, button) => {
  if (!(await confirmed(element.confirm, names))) return;
  button?.setAttribute("aria-disabled", "true");
  const outcome = await lab.click(here.user, { ...place, block_id: block.block_id }, element, value);
  button?.removeAttribute("aria-disabled");
  const key = place.ts ?? place.kind;
  if (outcome.acked) failures.delete(key);
  else failures.set(key, `${state.app.name} did not respond: ${outcome.why}`);
  draw();
};

const modal = new Modal(
  names,
  (...given) => actIn({ kind: "modal" })(...given),
  (view, values) => lab.submit(here.user, view.id, values),
  () => lab.close(here.user),
);

function readAddress() {
  const permalink = /^\/archives\/(\w+)\/p(\d{10})(\d{6})$/.exec(location.pathname);
  if (permalink && !location.hash) {
    const [, channel, seconds, rest] = permalink;
    const thread = new URLSearchParams(location.search).get("thread_ts") ?? `${seconds}.${rest}`;
    history.replaceState(null, "", `/${location.search}#/${channel}/${thread}`);
  }
  const [, first = "", thread = ""] = location.hash.split("/");
  here.home = first === HOME;
  if (first && !here.home) here.channel = decodeURIComponent(first);
  here.thread = here.home ? "" : decodeURIComponent(thread);
}

const goTo = (...parts) => {
  location.hash = `/${parts.filter(Boolean).map(encodeURIComponent).join("/")}`;
};

async function refresh() {
  const asked = { ...here };
  const fresh = await lab.state(here.user, here.channel);
  if (asked.user !== here.user || asked.channel !== here.channel) return;
  const same = state && state.asked.user === asked.user && state.asked.channel === asked.channel;
  if (same && fresh.revision < state.revision) return;
  state = { ...fresh, asked };
  const people = names.people();
  if (!people.some((person) => person.id === here.user) && people.length) return choose(people[0].id);
  if (!here.channel && state.channels.length) {
    here.channel = state.channels[0].id;
    return refresh();
  }
  draw();
}

// Changes that come while the last ones are still being fetched are fetched together.
let fetching = false;
let changedMeanwhile = false;

async function follow() {
  changedMeanwhile = true;
  if (fetching) return;
  fetching = true;
  try {
    while (changedMeanwhile) {
      changedMeanwhile = false;
      await refresh();
    }
  } finally {
    fetching = false;
  }
}

function choose(user) {
  here.user = user;
  sessionStorage.setItem("acting", user);
  drawnHome = undefined;
  if (here.home) lab.home(user);
  return refresh();
}

function drawSidebar() {
  byId("team").textContent = state.team;
  keyed(byId("channels"), state.channels.map((channel) => {
    const current = !here.home && channel.id === here.channel;
    if (current) seen.set(channel.id, channel.newest);
    return { id: channel.id, name: channel.name, current, unread: channel.newest > (seen.get(channel.id) ?? "") };
  }), (row) => row.id, (row) => el("li", {},
    el("button", { type: "button", class: row.unread ? "unread" : "", "aria-current": row.current ? "page" : undefined, "data-testid": `channel-${row.id}`, onclick: () => goTo(row.id) },
      el("span", { class: "hash", "aria-hidden": "true", text: "#" }), row.name, row.unread && el("span", { class: "visually-hidden", text: " (unread)" }))));
  keyed(byId("apps"), [{ id: HOME, name: state.app.name, current: here.home }], (row) => row.id, (row) => el("li", {},
    el("button", { type: "button", "aria-current": row.current ? "page" : undefined, "data-testid": "app-home", onclick: () => goTo(HOME) }, avatar(row.name, true, true), row.name)));
  keyed(byId("acting"), names.people(), (row) => row.id, (row) => el("option", { value: row.id, text: row.name }));
  byId("acting").value = here.user;
}

function drawHome() {
  const home = byId("home");
  home.hidden = !here.home;
  byId("timeline").hidden = byId("composer").hidden = here.home;
  const mark = JSON.stringify([here.user, state.home?.hash, failures.get(HOME)]);
  if (!here.home || drawnHome === mark) return;
  drawnHome = mark;
  const failure = failures.get(HOME);
  home.replaceChildren(
    el("div", { class: "home-view" },
      failure && el("p", { class: "failure", role: "alert", text: failure }),
      state.home
        ? drawBlocks(state.home.blocks, names, actIn({ kind: HOME }))
        : el("p", { class: "empty", text: `${state.app.name} has nothing to show ${names.user(here.user)} here yet.` })));
}

function drawThread(tools) {
  const root = state.messages.find((message) => message.ts === here.thread);
  const panel = byId("thread");
  panel.hidden = !root;
  document.body.classList.toggle("in-thread", Boolean(root));
  if (!root) return;
  byId("thread-channel").textContent = `# ${names.channel(here.channel)}`;
  const thread = { ...tools, openThread: null, place: here.thread };
  drawList(byId("thread-timeline"), [root, ...root.replies ?? []], thread);
  threadBox.label("Reply…", []);
}

function draw() {
  if (!state) return;
  const channel = state.channels.find((one) => one.id === here.channel);
  const tools = { names, channel: here.channel, place: here.channel, failures, act: actIn, openThread: (ts) => goTo(here.channel, ts) };
  drawSidebar();
  byId("title").replaceChildren(...(here.home
    ? [avatar(state.app.name, true, true), state.app.name]
    : [el("span", { class: "hash", "aria-hidden": "true", text: "#" }), channel?.name ?? ""]));
  byId("home-tab").hidden = !here.home;
  byId("note").textContent = here.home ? "" : channel?.is_archived ? "archived" : "";
  document.title = `${here.home ? state.app.name : `#${channel?.name ?? ""}`} – ${state.team} (lab)`;
  drawHome();
  drawList(byId("timeline"), state.messages, tools);
  drawThread(tools);
  mainBox.label(`Message #${channel?.name ?? ""}`, state.commands);
  modal.show(state.modal);
}

const say = (thread) => (text) => lab.say(here.user, here.channel, text, thread());
const mainBox = composer("composer", say(() => undefined));
const threadBox = composer("thread-composer", say(() => here.thread));

function showMenu(open) {
  document.body.classList.toggle("menu-open", open);
  byId("scrim").hidden = !open;
  byId("menu").setAttribute("aria-expanded", String(open));
}

function start() {
  byId("composer").append(mainBox.node);
  byId("thread-composer").append(threadBox.node);
  here.user = new URLSearchParams(location.search).get("user") ?? sessionStorage.getItem("acting") ?? "";
  byId("acting").addEventListener("change", (event) => choose(event.target.value));
  byId("thread-close").addEventListener("click", () => goTo(here.channel));
  byId("menu").addEventListener("click", () => showMenu(true));
  byId("scrim").addEventListener("click", () => showMenu(false));
  addEventListener("hashchange", () => {
    const wasHome = here.home;
    readAddress();
    showMenu(false);
    if (here.home && !wasHome) lab.home(here.user);
    refresh();
  });
  readAddress();
  const online = (up) => {
    byId("offline").hidden = up;
  };
  lab.listen(() => follow().catch(() => online(false)), online);
  refresh().then(() => here.home && lab.home(here.user)).catch(() => online(false));
}

start();
