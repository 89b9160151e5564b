"""Blind spots: what the agent cannot see, as findings about the agent itself. They never read as healthy."""

from checks.finding import Action, Finding, Severity


def log_lost(count: int, first_seen: float, last_seen: float) -> Finding:
    """Return that `count` kernel records were overwritten unread."""
    return Finding(
        check="log-lost",
        subsystem="agent",
        code="log-lost",
        severity=Severity.WARNING,
        action=Action.NONE,
        count=count,
        first_seen=first_seen,
        last_seen=last_seen,
        summary=f"{count} kernel records were overwritten before the agent could read them.",
    )


def log_blind(reason: str, since: float, at: float) -> Finding:
    """Return that the kernel log cannot be read."""
    summary = "The agent cannot read the kernel log, so faults that only it tells of stay unseen."
    return _ask("log-blind", reason, (since, at), summary)


def policy_invalid(reason: str, since: float, at: float) -> Finding:
    """Return that the mounted policy cannot be used."""
    summary = "The node's check policy cannot be used; the last good one, or the defaults, stay in force."
    return _ask("policy-invalid", reason, (since, at), summary)


def _ask(code: str, reason: str, span: tuple[float, float], summary: str) -> Finding:
    return Finding(
        check=code,
        subsystem="agent",
        code=code,
        severity=Severity.WARNING,
        action=Action.ASK,
        first_seen=span[0],
        last_seen=span[1],
        summary=summary,
        evidence=reason,
    )
