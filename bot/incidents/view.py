"""IncidentView: an incident with everything that is said about it."""

from dataclasses import dataclass

from bot.incidents.incident import Incident
from bot.incidents.recommend import Recommendation


@dataclass(frozen=True, slots=True)
class IncidentView:
    """An incident, what is recommended for it, and trouble that keeps us from acting (empty for none)."""

    incident: Incident
    recommendation: Recommendation
    trouble: str = ""
