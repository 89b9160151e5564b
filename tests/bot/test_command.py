"""What people type after /cluster, and what it means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.command import Command, Help, ListIncidents, Mistake, ShowIncident, Status, parse


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", Help()),
        ("   ", Help()),
        ("help", Help()),
        ("help me please", Help()),
        ("?", Help()),
        ("status", Status()),
        ("  STATUS  ", Status()),
        ("“status”", Status()),
        ("'status'", Status()),
        ("--status", Status()),
        ("—status", Status()),
        ("status\n", Status()),
        ("sta\u200dtus", Status()),
        ("incidents", ListIncidents()),
        ("incident gpu-01-a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("incident “gpu-01-a1b2c3”", ShowIncident("gpu-01-a1b2c3")),
        ("incident gpu\N{EN DASH}01\N{EN DASH}a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("incident gpu\N{MINUS SIGN}01-a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("Incident GPU-01-A1B2C3", ShowIncident("gpu-01-a1b2c3")),
        ("incidents gpu-01-a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("incident", Mistake("incident", missing="an incident's id")),
        ("incident ../etc", Mistake("../etc", missing="an incident's id")),
        ("incident a b", Mistake("a b", meant="incident")),
        ("status now", Mistake("now", meant="status")),
        ("statsu", Mistake("statsu", meant="status")),
        ("incedents", Mistake("incedents", meant="incidents")),
        ("reboot gpu-01", Mistake("reboot")),
        ("<!channel>", Mistake("<!channel>")),
    ],
)
def test_text_is_read_as_it_was_meant(text: str, meant: Command) -> None:
    assert parse(text) == meant


@given(st.text(max_size=3_000))
def test_any_text_gives_a_command_with_short_words_and_never_an_error(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Status | ListIncidents | ShowIncident | Help | Mistake)
    if isinstance(found, Mistake):
        assert len(found.word) <= 100
