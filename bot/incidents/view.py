"""IncidentView: an incident with everything that people are shown about it."""

from dataclasses import dataclass

from bot.incidents.incident import Incident
from bot.incidents.recommend import Recommendation


@dataclass(frozen=True, slots=True)
class IncidentView:
    """An incident, the recommendation for it, and what keeps the bot from going on (empty for nothing)."""

    incident: Incident
    recommendation: Recommendation
    trouble: str = ""
