"""Foreign text made harmless, and a validator that knows every limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.messages import blocks
from bot.messages.blocks import Message, escape, plain, section, utc, validate, when
from tests.bot.samples import HOSTILE, NOW


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("&lt;!here&gt;", "&amp;lt;!here&amp;gt;"),
        ("<@U1>", "&lt;@U1&gt;"),
        ("a & b", "a &amp; b"),
        ("`code`", "'code'"),
        ("two\nlines", "two lines"),
        ("nul\x00", "nul\\u0000"),
        ("\u202egnp", "\\u202egnp"),
        ("", "-"),
    ],
)
def test_foreign_text_is_escaped_exactly(text: str, shown: str) -> None:
    assert escape(text, 100) == shown


def test_a_cut_never_splits_an_escape_and_says_that_there_is_more() -> None:
    assert escape("&&&&", 12) == "&amp;&amp; …"
    assert plain("abcdefgh", 6) == "abcd …"
    assert plain("abcdef", 6) == "abcdef"


@given(st.one_of(st.sampled_from(HOSTILE), st.text()), st.integers(10, 200))
def test_the_final_string_fits_and_holds_no_control_that_hides_or_turns_text(text: str, limit: int) -> None:
    for shown in (escape(text, limit), plain(text, limit)):
        assert 0 < len(shown) <= limit
        assert not set(shown) & set("\x00\x07\u202e\u200b\ud800")
    assert not set(escape(text, limit)) & set("<>`\n")


def test_a_moment_is_shown_in_the_readers_zone_and_else_in_utc() -> None:
    assert utc(NOW) == "2026-11-30 03:12:45 UTC"
    assert when(NOW) == f"<!date^{int(NOW.timestamp())}^{{date_num}} {{time_secs}}|2026-11-30 03:12:45 UTC>"


BAD = {
    "no text": Message(""),
    "long text": Message("x" * 4_001),
    "51 blocks": Message("x", tuple(section("x") for _ in range(51))),
    "long section": Message("x", (section("x" * 3_001),)),
    "empty section": Message("x", (section(""),)),
    "long header": Message("x", ({"type": "header", "text": {"type": "plain_text", "text": "x" * 151}},)),
    "13 kB": Message("x", tuple(section("x" * 2_900) for _ in range(5))),
    "long value": Message("x", ({"type": "actions", "elements": [blocks.button("x", "x", "x" * 2_001)]},)),
    "no buttons": Message("x", ({"type": "actions", "elements": []},)),
    "26 buttons": Message(
        "x", ({"type": "actions", "elements": [blocks.button("x", "x", "x") for _ in range(26)]},)
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_slack_would_refuse_is_found(name: str) -> None:
    assert len(validate(BAD[name])) == 1


def test_builders_of_small_parts_keep_their_limits() -> None:
    long = "y" * 5_000
    confirm = blocks.confirm(long, long, long, long)
    button = blocks.button(long, "approve", "v") | {"confirm": confirm}
    message = Message(
        "x",
        (
            blocks.header(long),
            blocks.preformatted(long),
            blocks.context("c"),
            {"type": "actions", "elements": [button]},
        ),
    )
    assert validate(message) == []
