"""People use the page in a real browser: what they click reaches the app, what the app does they see."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.lab.browser import open_browser
from tests.lab.slack.emulator import Slack
from tests.lab.tests.slack.boltapp import BoltApp
from tests.lab.tests.slack.conftest import APPROVER, CHANNEL
from tests.lab.tests.slack.plainclient import call

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
HOSTILE = (
    "&lt;!channel&gt; &lt;script&gt;document.title='x'&lt;/script&gt; "
    "<javascript:alert(1)|go> `</code>` \u202eabc"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = open_browser(playwright)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, slack: Slack) -> Iterator[Page]:
    """A page that fails the test on any script error, refused resource or request to elsewhere."""
    context = browser.new_context(viewport=DESK)  # type: ignore[arg-type]
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(f"script error: {error}"))
    opened.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
    opened.on(
        "request", lambda asked: None if asked.url.startswith(slack.page_url) else wrong.append(asked.url)
    )
    yield opened
    context.close()
    assert wrong == []


def button(name: str, **more: Any) -> dict[str, Any]:
    text = {"type": "plain_text", "text": name.title()}
    return {"type": "button", "action_id": name, "value": f"{name}-1", "text": text, **more}


def confirm() -> dict[str, Any]:
    return {
        "title": {"type": "plain_text", "text": "Reboot gpu-01?"},
        "text": {"type": "mrkdwn", "text": "This evicts *2 pods*."},
        "confirm": {"type": "plain_text", "text": "Reboot"},
        "deny": {"type": "plain_text", "text": "Not now"},
    }


def post(slack: Slack, text: str = "decide", **more: Any) -> str:
    return str(call(slack, "chat.postMessage", channel=CHANNEL, text=text, **more)["ts"])


def decide(slack: Slack) -> str:
    elements = [button("approve", style="primary", confirm=confirm()), button("reject", style="danger")]
    return post(slack, blocks=[{"type": "actions", "elements": elements}])


def test_a_click_is_confirmed_and_its_effect_appears_by_itself(
    slack: Slack, bolt: BoltApp, page: Page
) -> None:
    page.goto(slack.page_for(APPROVER, CHANNEL))
    ts = decide(slack)
    message = page.locator(f'[data-testid="message"][data-ts="{ts}"]')
    message.get_by_role("button", name="Approve").click()
    page.get_by_test_id("confirm-cancel").click()
    assert bolt.seen == []
    message.locator('[data-action-id="approve"]').click()
    expect(page.get_by_test_id("confirm")).to_contain_text("This evicts 2 pods.")
    page.get_by_test_id("confirm-ok").click()
    expect(message).to_contain_text(f"approved by {APPROVER}: approve-1")
    expect(message.get_by_test_id("edited")).to_be_visible()


def test_a_click_in_a_stale_window_can_be_made(slack: Slack, bolt: BoltApp, page: Page) -> None:
    ts = decide(slack)
    call(slack, "chat.update", channel=CHANNEL, ts=ts, text="superseded")
    page.goto(slack.page_for(APPROVER, CHANNEL))
    page.get_by_test_id("edited").click()
    page.get_by_test_id("earlier-version").locator('[data-action-id="approve"]').click()
    page.get_by_test_id("confirm-ok").click()
    slack.wait_for(lambda: bolt.seen)
    assert bolt.seen[0]["actions"][0]["value"] == "approve-1"


def test_a_modal_shows_what_is_wrong_and_closes_when_it_is_right(
    slack: Slack, bolt: BoltApp, page: Page
) -> None:
    decide(slack)
    page.goto(slack.page_for(APPROVER, CHANNEL))
    page.locator('[data-action-id="reject"]').click()
    modal = page.get_by_test_id("modal")
    modal.get_by_test_id("modal-submit").click()
    expect(modal.get_by_test_id("error-why")).to_have_text("Please complete this required field.")
    modal.get_by_label("Why?").fill("no")
    modal.get_by_test_id("modal-submit").click()
    expect(modal.get_by_test_id("error-why")).to_have_text("Say a little more.")
    modal.get_by_label("Why?").fill("the job ends at noon")
    modal.get_by_test_id("modal-submit").click()
    expect(modal).to_have_count(0)
    assert bolt.seen[-1]["view"]["state"]["values"]["why"]["text"]["value"] == "the job ends at noon"


def test_a_slash_command_is_answered_under_the_eyes_of_its_author(
    slack: Slack, bolt: BoltApp, page: Page
) -> None:
    slack.add_user("U0SECOND1", "Second Person", "second@example.com")
    page.goto(slack.page_for(APPROVER, CHANNEL))
    box = page.get_by_test_id("composer")
    box.fill("/shout hello")
    box.press("Enter")
    expect(page.get_by_test_id("composer-note")).to_contain_text("/shout is not a valid command")
    box.fill("/cluster status")
    box.press("Enter")
    expect(page.get_by_test_id("ephemeral").first).to_contain_text("Only visible to you")
    expect(page.get_by_text("you said status")).to_be_visible()
    page.get_by_test_id("acting-as").select_option("U0SECOND1")
    expect(page.get_by_test_id("ephemeral")).to_have_count(0)


def test_a_thread_shows_its_replies_and_takes_a_new_one(slack: Slack, page: Page) -> None:
    root = post(slack, "root")
    for word in ("one", "two"):
        post(slack, word, thread_ts=root)
    page.goto(slack.page_for(APPROVER, CHANNEL))
    page.get_by_test_id("open-thread").click()
    thread = page.get_by_test_id("thread")
    expect(thread.get_by_text("2 replies")).to_be_visible()
    thread.get_by_test_id("thread-composer").fill("three <b>")
    thread.get_by_test_id("thread-composer-send").click()
    expect(thread.get_by_test_id("message")).to_have_count(4)
    assert [reply["text"] for reply in slack.replies(CHANNEL, root)] == ["one", "two", "three &lt;b&gt;"]


def test_the_home_tab_asks_the_app_and_shows_what_it_publishes(
    slack: Slack, bolt: BoltApp, page: Page
) -> None:
    page.goto(slack.page_for(APPROVER, CHANNEL))
    page.get_by_test_id("app-home").click()
    slack.wait_for(lambda: slack.home(APPROVER))
    blocks = [{"type": "header", "text": {"type": "plain_text", "text": "Waiting for you"}}]
    call(slack, "views.publish", user_id=APPROVER, view={"type": "home", "blocks": blocks})
    expect(page.get_by_test_id("home").get_by_role("heading", name="Waiting for you")).to_be_visible()


def test_an_app_that_does_not_answer_is_named(slack: Slack, page: Page) -> None:
    decide(slack)
    page.goto(slack.page_for(APPROVER, CHANNEL))
    page.locator('[data-action-id="reject"]').click()
    expect(page.get_by_test_id("failure")).to_contain_text("Clusterwright did not respond: no connection")


def test_the_page_comes_back_by_itself_after_slack_was_down(slack: Slack, page: Page) -> None:
    page.goto(slack.page_for(APPROVER, CHANNEL))
    expect(page.get_by_test_id("offline")).to_be_hidden()
    slack.stop()
    expect(page.get_by_test_id("offline")).to_be_visible()
    slack.start()
    post(slack, "back again")
    expect(page.get_by_text("back again")).to_be_visible()
    expect(page.get_by_test_id("offline")).to_be_hidden()


def test_hostile_text_stays_text(slack: Slack, page: Page) -> None:
    name = {"type": "header", "text": {"type": "plain_text", "text": "<img src=x onerror=alert(1)>"}}
    lines = {"type": "text", "text": "``` </pre><script>alert(1)</script> <!here>"}
    log = {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [lines]}]}
    section = {"type": "section", "text": {"type": "mrkdwn", "text": HOSTILE}}
    post(slack, HOSTILE, blocks=[name, section, log])
    page.goto(slack.page_for(APPROVER, CHANNEL))
    message = page.get_by_test_id("message")
    expect(message).to_contain_text("<!channel> <script>document.title='x'</script> go </code>")
    expect(message).to_contain_text("``` </pre><script>alert(1)</script> <!here>")
    assert message.locator("script, img, a").count() == 0
    assert message.locator(".mention").count() == 0


def test_mrkdwn_looks_as_in_slack(slack: Slack, page: Page) -> None:
    post(
        slack,
        f"*bold* _it_ ~no~ `code *x*` <https://example.com/a|link> <@{APPROVER}> snake_case_name 2*3*4 "
        ":red_circle: :nonsense: <!date^1800000000^{date_num} {time_secs}|later> &amp;amp;\n&gt; quoted",
    )
    page.goto(slack.page_for(APPROVER, CHANNEL))
    text = page.get_by_test_id("message").locator(".body .text")
    assert text.locator("strong, em, s, code").all_text_contents() == ["bold", "it", "no", "code *x*"]
    assert text.locator("a").get_attribute("href") == "https://example.com/a"
    expect(text).to_contain_text("@Example Approver snake_case_name 2*3*4")
    expect(text).to_contain_text(":nonsense:")
    expect(text).to_contain_text("&amp;")
    expect(text.locator("svg")).to_have_attribute("aria-label", "red circle")
    expect(text.locator("time")).to_have_text("2027-01-15 08:00:00")
    expect(text.locator("blockquote")).to_have_text("quoted")


def test_a_permalink_opens_its_thread(slack: Slack, page: Page) -> None:
    ts = post(slack, "look here")
    page.goto(f"{slack.page_url}archives/{CHANNEL}/p{ts.replace('.', '')}")
    expect(page.get_by_test_id("thread")).to_contain_text("look here")


def test_on_a_phone_nothing_is_wider_than_the_screen(slack: Slack, bolt: BoltApp, page: Page) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    decide(slack)
    wide = {"type": "text", "text": "NVRM: " + "x" * 400}
    blocks = [{"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [wide]}]}]
    post(slack, "w" * 300, blocks=blocks)
    page.goto(slack.page_for(APPROVER, CHANNEL))
    expect(page.get_by_test_id("message")).to_have_count(2)
    root = page.locator("html")
    assert root.evaluate("node => node.scrollWidth") == PHONE["width"]
    page.locator("#menu").click()
    page.get_by_test_id("app-home").click()
    expect(page.get_by_test_id("home")).to_be_visible()


def test_the_page_can_be_used_with_the_keyboard_alone(slack: Slack, bolt: BoltApp, page: Page) -> None:
    decide(slack)
    page.goto(slack.page_for(APPROVER, CHANNEL))
    page.locator('[data-action-id="approve"]').focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("confirm-ok")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("confirm")).to_have_count(0)
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("message")).to_contain_text("approved by")
