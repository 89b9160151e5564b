from datetime import timedelta
from pathlib import Path

import pytest
from reconciler.repair.scene import Unknown
from structlog.testing import capture_logs

from reconciler.incidents.admission import Admitted, NotAdmitted, UnreadableRecord
from reconciler.source.git_source import Desired, GitRecordSource, GitSource
from tests.reconciler.site import START, Site
from tests.reconciler.town import Town

VALID = timedelta(seconds=60)


@pytest.fixture
def town(site: Site, tmp_path: Path) -> Town:
    return Town([site], tmp_path)


@pytest.fixture
def git_source(town: Town) -> GitSource:
    return town.git_source(town.repository())


def test_configuration_and_open_records_are_read(town: Town, site: Site, git_source: GitSource) -> None:
    town.order(site)
    git_source.read(START)
    desired = git_source.desired
    assert desired.config is not None
    assert desired.open_records == (site.path,)
    orders = GitRecordSource(desired, VALID)
    assert isinstance(orders.judge(site.path, START), Admitted)
    assert orders.stands(site.path, START) is True
    assert orders.stands("other", START) is False
    assert orders.owner(site.path) == "approver@example.com"


def test_before_the_first_read_nothing_is_known(site: Site) -> None:
    orders = GitRecordSource(Desired(), VALID)
    assert isinstance(orders.judge(site.path, START), Unknown)
    assert orders.stands(site.path, START) is None
    assert orders.owner(site.path) == ""


def test_what_was_read_before_a_repair_was_seen_does_not_say_that_its_record_is_missing(
    town: Town, site: Site, git_source: GitSource
) -> None:
    git_source.read(START)
    seen = START + timedelta(seconds=1)
    before = GitRecordSource(git_source.desired, VALID, seen)
    assert before.judge(site.path, seen) == Unknown("Git was read before this repair was seen")
    assert before.stands(site.path, seen) is None
    git_source.read(seen)
    after = GitRecordSource(git_source.desired, VALID, seen)
    assert isinstance(after.judge(site.path, seen), UnreadableRecord)
    assert after.stands(site.path, seen) is False
    town.order(site)
    git_source.read(seen)
    known = GitRecordSource(git_source.desired, VALID, seen + timedelta(seconds=1))
    assert isinstance(known.judge(site.path, seen), Admitted)


def test_a_branch_of_incidents_that_nobody_made_yet_is_no_trouble(town: Town, git_source: GitSource) -> None:
    git_source.read(START)
    assert (git_source.desired.open_records, git_source.desired.read_at) == ((), START)


def test_a_host_that_is_away_leaves_what_was_read_and_its_age_grows(
    town: Town, site: Site, git_source: GitSource
) -> None:
    town.order(site)
    git_source.read(START)
    Path(town.host.url).rename(f"{town.host.url}-away")
    with capture_logs() as logs:
        for seconds in (10, 20, 61):
            git_source.read(START + timedelta(seconds=seconds))
    assert [each["event"] for each in logs] == ["git could not be read"]

    orders = GitRecordSource(git_source.desired, VALID)
    assert isinstance(orders.judge(site.path, START + timedelta(seconds=60)), Admitted)
    assert orders.judge(site.path, START + timedelta(seconds=61)) == Unknown("Git cannot be read")
    assert orders.stands(site.path, START + timedelta(seconds=61)) is True
    assert orders.stands("other", START + timedelta(seconds=61)) is None

    Path(f"{town.host.url}-away").rename(town.host.url)
    with capture_logs() as logs:
        git_source.read(START + timedelta(seconds=70))
    assert [each["event"] for each in logs] == ["git was read again"]
    assert git_source.desired.read_at == START + timedelta(seconds=70)


def test_after_a_start_without_host_the_mirror_is_known_but_not_valid(
    town: Town, site: Site, git_source: GitSource
) -> None:
    town.order(site)
    git_source.read(START)
    Path(town.host.url).rename(f"{town.host.url}-away")
    again = town.git_source(town.repository())
    again.read(START)
    assert again.desired.config is not None
    assert again.desired.open_records == (site.path,)
    assert isinstance(GitRecordSource(again.desired, VALID).judge(site.path, START), Unknown)


@pytest.mark.parametrize("bad", [b"a: [", b"kind: x", None], ids=["not YAML", "no config", "deleted"])
def test_a_configuration_with_errors_leaves_the_last_good_one_and_is_named_once(
    town: Town, git_source: GitSource, bad: bytes | None
) -> None:
    git_source.read(START)
    good = git_source.desired.config
    town.host.commit("main", {"cluster.yaml": bad})
    with capture_logs() as logs:
        for seconds in (1, 2):
            git_source.read(START + timedelta(seconds=seconds))
    assert [each["event"] for each in logs] == ["configuration refused"]
    assert logs[0]["faults"][0].startswith("cluster.yaml:")
    assert git_source.desired.config is good
    assert git_source.desired.read_at == START + timedelta(seconds=2)


def test_the_configuration_of_another_cluster_is_refused(town: Town, git_source: GitSource) -> None:
    town.host.commit("main", {"cluster.yaml": town.config.replace(b"name: example}", b"name: other}")})
    git_source.read(START)
    assert git_source.desired.config is None


@pytest.mark.parametrize("branch", ["main", "incidents"])
def test_a_history_that_was_rewritten_is_not_known_to_be_valid(
    town: Town, site: Site, git_source: GitSource, branch: str
) -> None:
    town.order(site)
    git_source.read(START)
    town.host.rewrite(branch)
    git_source.read(START + timedelta(seconds=61))
    assert git_source.desired.open_records == (site.path,)
    assert isinstance(
        GitRecordSource(git_source.desired, VALID).judge(site.path, START + timedelta(seconds=61)), Unknown
    )


def test_an_incident_that_closes_over_an_open_record_refuses_it(
    town: Town, site: Site, git_source: GitSource
) -> None:
    town.order(site)
    town.host.commit("incidents", {f"{site.directory}/closed.yaml": b"x: 1\n"})
    git_source.read(START)
    assert git_source.desired.open_records == ()
    judged = GitRecordSource(git_source.desired, VALID).judge(site.path, START)
    assert isinstance(judged, NotAdmitted)
    assert judged.reason == "the incident is closed"


def test_what_has_ended_is_not_read_again(town: Town, site: Site, git_source: GitSource) -> None:
    town.order(site)
    town.host.commit(
        "incidents", {f"{site.directory}/{name}": b"x: 1\n" for name in ("closed.yaml", "outcome-1.yaml")}
    )
    git_source.read(START)
    assert git_source.desired.files == {}
    assert GitRecordSource(git_source.desired, VALID).stands(site.path, START) is True
