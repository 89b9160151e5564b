"""Draws the incident's state diagram into docs/incident-states.md, from the bot's transition table.

`python -m tools.state_diagram` writes the page, `--check` exits with 1 when the page is stale.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from bot.incidents.incident import TABLE, IncidentEvent, State
from tools.generated import main

PAGE = Path(__file__).resolve().parents[1] / "docs" / "incident-states.md"


def diagram(table: Mapping[tuple[State, IncidentEvent], State]) -> str:
    """Return the table as a Mermaid state diagram: one arrow for each pair of states, naming its events."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (before, event), after in table.items():
        arrows.setdefault((before, after), []).append(event.value)
    order = list(State)
    lines = [
        f"    {before.value} --> {after.value}: {', '.join(sorted(events))}"
        for (before, after), events in sorted(
            arrows.items(), key=lambda each: (order.index(each[0][0]), order.index(each[0][1]))
        )
    ]
    first, last = State.OPEN.value, State.CLOSED.value
    head = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    return "\n".join([*head, *lines, f"    {last} --> [*]", "```"])


if __name__ == "__main__":
    sys.exit(main(PAGE, diagram(TABLE), "tools.state_diagram", sys.argv[1:]))
