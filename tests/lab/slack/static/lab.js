// The only door of this page: the emulator's own control paths.

async function post(path, body) {
  try {
    const answer = await fetch(`/_lab/${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) return { acked: false, why: `the lab answered ${answer.status}`, errors: {} };
    return await answer.json();
  } catch {
    return { acked: false, why: "Slack is not reachable", errors: {} };
  }
}

export const lab = {
  click: (user, place, element, value) =>
    post("click", { user, place, action_id: element.action_id, value }),
  submit: (user, viewId, values) => post("submit", { user, view_id: viewId, values }),
  close: (user) => post("close", { user }),
  say: (user, channel, text, threadTs) => post("say", { user, channel, text, thread_ts: threadTs }),
  home: (user) => post("home", { user }),
  async state(user, channel) {
    const answer = await fetch(`/_lab/state?${new URLSearchParams({ user, channel })}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(`the lab answered ${answer.status}`);
    return answer.json();
  },
  listen(onChange, onOnline) {
    const stream = new EventSource("/_lab/stream");
    stream.onmessage = onChange;
    stream.onopen = () => onOnline(true);
    stream.onerror = () => {
      onOnline(false);
      if (stream.readyState === EventSource.CLOSED) {
        setTimeout(() => lab.listen(onChange, onOnline), 1000);
      }
    };
  },
};
