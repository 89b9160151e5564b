"""Click → Granted or Denied: who may decide, about what, until when. Pure and fail closed.

The policy is judged at the click from the approver list in Git and the world as it is read now; being in the
channel permits nothing. What could not be read denies, and a denial is told to the person, never recorded.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.incidents.incident import Incident, State
from reconciler.config.schema import Config
from reconciler.incidents.plan import PlannedPod
from reconciler.incidents.records import Decider


@dataclass(frozen=True, slots=True)
class Account:
    """A Slack account as Slack describes it now. `email` is None when the profile shows none."""

    id: str
    name: str
    email: str | None
    bot: bool = False
    guest: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Click:
    """A button pressed: who (None when Slack could not say), and which offer it showed."""

    user: str
    account: Account | None
    incident: str
    revision: int
    stamp: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """The node as Kubernetes and its newest report show it at the click.

    `covered` says whether the plan that was shown still covers every pod that a drain would evict now, and
    `fresh` whether the newest report is recent and still shows exactly the incident's findings.
    """

    node_uid: str | None
    boot_id: str
    covered: bool
    fresh: bool
    newcomers: tuple[PlannedPod, ...] = ()


class Denial(StrEnum):
    """Why a click decided nothing; also the label of its metric."""

    STARTING = "starting"
    UNKNOWN_INCIDENT = "unknown-incident"
    ACCOUNT_UNREADABLE = "account-unreadable"
    NOT_A_PERSON = "not-a-person"
    GUEST = "guest"
    NO_EMAIL = "no-email"
    NO_ACCESS_LIST = "no-access-list"
    NOT_AN_APPROVER = "not-an-approver"
    ALREADY_DECIDED = "already-decided"
    CLOSED = "closed"
    SUPERSEDED = "superseded"
    LAPSED = "lapsed"
    NOTHING_OFFERED = "nothing-offered"
    WORLD_UNREADABLE = "world-unreadable"
    NODE_CHANGED = "node-changed"
    FINDINGS_CHANGED = "findings-changed"
    PLAN_CHANGED = "plan-changed"


@dataclass(frozen=True, slots=True)
class Granted:
    """The click decides. `expires_at` is when the approval lapses if nothing has come of it."""

    person: Decider
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Denied:
    """The click decides nothing. `by` and `at` name an earlier decision, `detail` what has changed."""

    why: Denial
    by: str = ""
    at: datetime | None = None
    detail: str = ""


def decide(
    click: Click, incident: Incident, config: Config | None, world: World | None, now: datetime
) -> Granted | Denied:
    """Return whether the click approves the incident's offer. `config` and `world` are None if unreadable."""
    person = identify(click, config)
    if isinstance(person, Denied):
        return person
    stale = _out_of_date(click, incident, now)
    if stale is not None:
        return stale
    if incident.offer is None:
        return Denied(Denial.NOTHING_OFFERED)
    changed = _world_changed(incident, world)
    if changed is not None:
        return changed
    lifetime = config.policy.approval_lifetime if config else timedelta(0)
    return Granted(person, now + lifetime)


def decide_again(
    click: Click, incident: Incident, config: Config | None, world: World | None
) -> Denied | None:
    """Return why an approval that waits to be recorded no longer holds, None while it does."""
    person = identify(click, config)
    return person if isinstance(person, Denied) else _world_changed(incident, world)


def decide_rejection(
    click: Click, incident: Incident, config: Config | None, now: datetime
) -> Granted | Denied:
    """Return whether the click rejects the offer: the same people and offer, but the world need not match."""
    person = identify(click, config)
    if isinstance(person, Denied):
        return person
    return _out_of_date(click, incident, now) or Granted(person, now)


def decide_reopening(click: Click, incident: Incident, config: Config | None) -> Granted | Denied:
    """Return whether the click may have the repair offered again, or say that a held one is settled."""
    person = identify(click, config)
    if isinstance(person, Denied):
        return person
    if incident.state is State.CLOSED:
        return Denied(Denial.CLOSED)
    if incident.state not in (State.LAPSED, State.DECLINED, State.HELD):
        return Denied(Denial.SUPERSEDED)
    return Granted(person, incident.opened_at)


def identify(click: Click, config: Config | None) -> Decider | Denied:
    """Return the person behind the click, if that person may decide."""
    account = click.account
    if account is None:
        return Denied(Denial.ACCOUNT_UNREADABLE)
    if account.bot or account.gone:
        return Denied(Denial.NOT_A_PERSON)
    if account.guest:
        return Denied(Denial.GUEST)
    if not account.email:
        return Denied(Denial.NO_EMAIL)
    if config is None:
        return Denied(Denial.NO_ACCESS_LIST)
    known = config.approver(account.email)
    if known is None:
        return Denied(Denial.NOT_AN_APPROVER, detail=account.email)
    return Decider(name=known.name, email=known.email, slack=account.id)


def _out_of_date(click: Click, incident: Incident, now: datetime) -> Denied | None:
    decision = incident.decision
    if incident.state is State.CLOSED:
        return Denied(Denial.CLOSED)
    if incident.state not in (State.OPEN, State.LAPSED) and decision is not None:
        return Denied(Denial.ALREADY_DECIDED, decision.person.name, decision.at)
    if incident.state is State.LAPSED:
        return Denied(Denial.LAPSED, at=incident.offer.expires_at if incident.offer else None)
    if incident.state is not State.OPEN:
        return Denied(Denial.SUPERSEDED)
    if (click.revision, click.stamp) != (incident.revision, incident.stamp):
        return Denied(Denial.SUPERSEDED)
    if incident.offer is not None and now >= incident.offer.expires_at:
        return Denied(Denial.LAPSED, at=incident.offer.expires_at)
    return None


def _world_changed(incident: Incident, world: World | None) -> Denied | None:
    if world is None:
        return Denied(Denial.WORLD_UNREADABLE)
    if world.node_uid != incident.node_uid or world.boot_id != incident.boot_id:
        return Denied(Denial.NODE_CHANGED, detail=world.boot_id if world.node_uid else "")
    if not world.fresh:
        return Denied(Denial.FINDINGS_CHANGED)
    if not world.covered:
        names = ", ".join(f"{pod.namespace}/{pod.name}" for pod in world.newcomers)
        return Denied(Denial.PLAN_CHANGED, detail=names)
    return None
