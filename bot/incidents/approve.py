"""A click → Granted or Denied: who may decide, about what, until when. Pure; fails closed.

The policy is judged at the click, from the approver list in Git and a fresh observation of the node. Being in
the channel grants nothing. What cannot be read denies the click. The person gets the reason; Git records no denial.
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
class DecisionRequest:
    """A click on a button: who clicked, and which offer the button showed.

    `account` is None when Slack could not say who it is.
    """

    user: str
    account: Account | None
    incident: str
    revision: int
    offer_digest: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NodeObservation:
    """The node as Kubernetes and its newest report show it at the click.

    `uncovered_pods` are the pods that a drain would evict now and that the plan does not cover. `fresh` says
    whether the newest report is recent and shows exactly the findings of the incident.
    """

    node_uid: str | None
    boot_id: str
    fresh: bool
    uncovered_pods: tuple[PlannedPod, ...] = ()


class Denial(StrEnum):
    """Why a click decided nothing. The value is also the label of the metric."""

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
    NODE_UNREADABLE = "world-unreadable"
    NODE_CHANGED = "node-changed"
    FINDINGS_CHANGED = "findings-changed"
    PLAN_CHANGED = "plan-changed"


@dataclass(frozen=True, slots=True)
class Granted:
    """The click decides. `expires_at` is when the approval lapses if it was not used (UTC)."""

    person: Decider
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Denied:
    """The click decides nothing. `by` and `at` name an earlier decision, `detail` says what has changed."""

    why: Denial
    by: str = ""
    at: datetime | None = None
    detail: str = ""


def decide(
    request: DecisionRequest,
    incident: Incident,
    config: Config | None,
    node: NodeObservation | None,
    now: datetime,
) -> Granted | Denied:
    """Return whether the click approves the offer. `config` and `node` are None when they cannot be read."""
    person = identify(request, config)
    if isinstance(person, Denied):
        return person
    stale = _out_of_date(request, incident, now)
    if stale is not None:
        return stale
    if incident.offer is None:
        return Denied(Denial.NOTHING_OFFERED)
    changed = _node_changed(incident, node)
    if changed is not None:
        return changed
    lifetime = config.policy.approval_lifetime if config else timedelta(0)
    return Granted(person, now + lifetime)


def decide_again(
    request: DecisionRequest, incident: Incident, config: Config | None, node: NodeObservation | None
) -> Denied | None:
    """Return why an approval that is not recorded yet no longer holds, None while it does."""
    person = identify(request, config)
    return person if isinstance(person, Denied) else _node_changed(incident, node)


def decide_rejection(
    request: DecisionRequest, incident: Incident, config: Config | None, now: datetime
) -> Granted | Denied:
    """Return whether the click rejects the offer: by an approver, about this offer, whatever the node does."""
    person = identify(request, config)
    if isinstance(person, Denied):
        return person
    return _out_of_date(request, incident, now) or Granted(person, now)


def decide_reopening(request: DecisionRequest, incident: Incident, config: Config | None) -> Granted | Denied:
    """Return whether the click may have a repair offered again, or mark a held incident as fixed."""
    person = identify(request, config)
    if isinstance(person, Denied):
        return person
    if incident.state is State.CLOSED:
        return Denied(Denial.CLOSED)
    if incident.state not in (State.LAPSED, State.DECLINED, State.HELD):
        return Denied(Denial.SUPERSEDED)
    return Granted(person, incident.opened_at)


def identify(request: DecisionRequest, config: Config | None) -> Decider | Denied:
    """Return the person behind the click, if that person may decide."""
    account = request.account
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


def _out_of_date(request: DecisionRequest, incident: Incident, now: datetime) -> Denied | None:
    decision = incident.decision
    if incident.state is State.CLOSED:
        return Denied(Denial.CLOSED)
    if incident.state not in (State.OPEN, State.LAPSED) and decision is not None:
        return Denied(Denial.ALREADY_DECIDED, decision.person.name, decision.at)
    if incident.state is State.LAPSED:
        return Denied(Denial.LAPSED, at=incident.offer.expires_at if incident.offer else None)
    if incident.state is not State.OPEN:
        return Denied(Denial.SUPERSEDED)
    if (request.revision, request.offer_digest) != (incident.revision, incident.offer_digest):
        return Denied(Denial.SUPERSEDED)
    if incident.offer is not None and now >= incident.offer.expires_at:
        return Denied(Denial.LAPSED, at=incident.offer.expires_at)
    return None


def _node_changed(incident: Incident, node: NodeObservation | None) -> Denied | None:
    if node is None:
        return Denied(Denial.NODE_UNREADABLE)
    if node.node_uid != incident.node_uid or node.boot_id != incident.boot_id:
        return Denied(Denial.NODE_CHANGED, detail=node.boot_id if node.node_uid else "")
    if not node.fresh:
        return Denied(Denial.FINDINGS_CHANGED)
    if node.uncovered_pods:
        names = ", ".join(f"{pod.namespace}/{pod.name}" for pod in node.uncovered_pods)
        return Denied(Denial.PLAN_CHANGED, detail=names)
    return None
