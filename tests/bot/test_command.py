"""What people type after /cluster, and what it means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.command import Command, ListIncidents, ShowHelp, ShowIncident, ShowStatus, UnknownCommand, parse


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", ShowHelp()),
        ("   ", ShowHelp()),
        ("help", ShowHelp()),
        ("help me please", ShowHelp()),
        ("?", ShowHelp()),
        ("status", ShowStatus()),
        ("  STATUS  ", ShowStatus()),
        ("“status”", ShowStatus()),
        ("'status'", ShowStatus()),
        ("--status", ShowStatus()),
        ("—status", ShowStatus()),
        ("status\n", ShowStatus()),
        ("sta\u200dtus", ShowStatus()),
        ("incidents", ListIncidents()),
        ("incident gpu-01-a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("incident “gpu-01-a1b2c3”", ShowIncident("gpu-01-a1b2c3")),
        ("incident gpu\N{EN DASH}01\N{EN DASH}a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("incident gpu\N{MINUS SIGN}01-a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("Incident GPU-01-A1B2C3", ShowIncident("gpu-01-a1b2c3")),
        ("incidents gpu-01-a1b2c3", ShowIncident("gpu-01-a1b2c3")),
        ("incident", UnknownCommand("incident", missing="an incident's id")),
        ("incident ../etc", UnknownCommand("../etc", missing="an incident's id")),
        ("incident a b", UnknownCommand("a b", meant="incident")),
        ("status now", UnknownCommand("now", meant="status")),
        ("statsu", UnknownCommand("statsu", meant="status")),
        ("incedents", UnknownCommand("incedents", meant="incidents")),
        ("reboot gpu-01", UnknownCommand("reboot")),
        ("<!channel>", UnknownCommand("<!channel>")),
    ],
)
def test_text_is_read_as_it_was_meant(text: str, meant: Command) -> None:
    assert parse(text) == meant


@given(st.text(max_size=3_000))
def test_any_text_gives_a_command_with_short_words_and_never_an_error(text: str) -> None:
    found = parse(text)
    assert isinstance(found, ShowStatus | ListIncidents | ShowIncident | ShowHelp | UnknownCommand)
    if isinstance(found, UnknownCommand):
        assert len(found.word) <= 100
