from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.follow import Desired, Follower, GitOrders
from reconciler.repair.admission import Admitted, Refused, Unreadable
from reconciler.repair.scene import Unknown
from tests.reconciler.site import START, Site
from tests.reconciler.town import Town

VALID = timedelta(seconds=60)


@pytest.fixture
def town(site: Site, tmp_path: Path) -> Town:
    return Town([site], tmp_path)


@pytest.fixture
def follower(town: Town) -> Follower:
    return town.follower(town.repository())


def test_configuration_and_open_records_are_read(town: Town, site: Site, follower: Follower) -> None:
    town.order(site)
    follower.read(START)
    desired = follower.desired
    assert desired.config is not None
    assert desired.open_records == (site.path,)
    orders = GitOrders(desired, VALID)
    assert isinstance(orders.judge(site.path, START), Admitted)
    assert orders.stands(site.path, START) is True
    assert orders.stands("other", START) is False
    assert orders.owner(site.path) == "approver@example.com"


def test_before_the_first_read_nothing_is_known(site: Site) -> None:
    orders = GitOrders(Desired(), VALID)
    assert isinstance(orders.judge(site.path, START), Unknown)
    assert orders.stands(site.path, START) is None
    assert orders.owner(site.path) == ""


def test_what_was_read_before_a_repair_was_seen_does_not_say_that_its_record_is_missing(
    town: Town, site: Site, follower: Follower
) -> None:
    follower.read(START)
    seen = START + timedelta(seconds=1)
    before = GitOrders(follower.desired, VALID, seen)
    assert before.judge(site.path, seen) == Unknown("Git was read before this repair was seen")
    assert before.stands(site.path, seen) is None
    follower.read(seen)
    after = GitOrders(follower.desired, VALID, seen)
    assert isinstance(after.judge(site.path, seen), Unreadable)
    assert after.stands(site.path, seen) is False
    town.order(site)
    follower.read(seen)
    known = GitOrders(follower.desired, VALID, seen + timedelta(seconds=1))
    assert isinstance(known.judge(site.path, seen), Admitted)


def test_a_branch_of_incidents_that_nobody_made_yet_is_no_trouble(town: Town, follower: Follower) -> None:
    follower.read(START)
    assert (follower.desired.open_records, follower.desired.read_at) == ((), START)


def test_a_host_that_is_away_leaves_what_was_read_and_its_age_grows(
    town: Town, site: Site, follower: Follower
) -> None:
    town.order(site)
    follower.read(START)
    Path(town.host.url).rename(f"{town.host.url}-away")
    with capture_logs() as logs:
        for seconds in (10, 20, 61):
            follower.read(START + timedelta(seconds=seconds))
    assert [each["event"] for each in logs] == ["git could not be read"]

    orders = GitOrders(follower.desired, VALID)
    assert isinstance(orders.judge(site.path, START + timedelta(seconds=60)), Admitted)
    assert orders.judge(site.path, START + timedelta(seconds=61)) == Unknown("Git cannot be read")
    assert orders.stands(site.path, START + timedelta(seconds=61)) is True
    assert orders.stands("other", START + timedelta(seconds=61)) is None

    Path(f"{town.host.url}-away").rename(town.host.url)
    with capture_logs() as logs:
        follower.read(START + timedelta(seconds=70))
    assert [each["event"] for each in logs] == ["git was read again"]
    assert follower.desired.read_at == START + timedelta(seconds=70)


def test_after_a_start_without_host_the_mirror_is_known_but_not_valid(
    town: Town, site: Site, follower: Follower
) -> None:
    town.order(site)
    follower.read(START)
    Path(town.host.url).rename(f"{town.host.url}-away")
    again = town.follower(town.repository())
    again.read(START)
    assert again.desired.config is not None
    assert again.desired.open_records == (site.path,)
    assert isinstance(GitOrders(again.desired, VALID).judge(site.path, START), Unknown)


@pytest.mark.parametrize("bad", [b"a: [", b"kind: x", None], ids=["not YAML", "no config", "deleted"])
def test_a_configuration_with_errors_leaves_the_last_good_one_and_is_named_once(
    town: Town, follower: Follower, bad: bytes | None
) -> None:
    follower.read(START)
    good = follower.desired.config
    town.host.commit("main", {"cluster.yaml": bad})
    with capture_logs() as logs:
        for seconds in (1, 2):
            follower.read(START + timedelta(seconds=seconds))
    assert [each["event"] for each in logs] == ["configuration refused"]
    assert logs[0]["faults"][0].startswith("cluster.yaml:")
    assert follower.desired.config is good
    assert follower.desired.read_at == START + timedelta(seconds=2)


def test_the_configuration_of_another_cluster_is_refused(town: Town, follower: Follower) -> None:
    town.host.commit("main", {"cluster.yaml": town.config.replace(b"name: example}", b"name: other}")})
    follower.read(START)
    assert follower.desired.config is None


@pytest.mark.parametrize("branch", ["main", "incidents"])
def test_a_history_that_was_rewritten_is_not_known_to_be_valid(
    town: Town, site: Site, follower: Follower, branch: str
) -> None:
    town.order(site)
    follower.read(START)
    town.host.rewrite(branch)
    follower.read(START + timedelta(seconds=61))
    assert follower.desired.open_records == (site.path,)
    assert isinstance(
        GitOrders(follower.desired, VALID).judge(site.path, START + timedelta(seconds=61)), Unknown
    )


def test_an_incident_that_closes_over_an_open_record_refuses_it(
    town: Town, site: Site, follower: Follower
) -> None:
    town.order(site)
    town.host.commit("incidents", {f"{site.directory}/closed.yaml": b"x: 1\n"})
    follower.read(START)
    assert follower.desired.open_records == ()
    judged = GitOrders(follower.desired, VALID).judge(site.path, START)
    assert isinstance(judged, Refused)
    assert judged.reason == "the incident is closed"


def test_what_has_ended_is_not_read_again(town: Town, site: Site, follower: Follower) -> None:
    town.order(site)
    town.host.commit(
        "incidents", {f"{site.directory}/{name}": b"x: 1\n" for name in ("closed.yaml", "outcome-1.yaml")}
    )
    follower.read(START)
    assert follower.desired.files == {}
    assert GitOrders(follower.desired, VALID).stands(site.path, START) is True
