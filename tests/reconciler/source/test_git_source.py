from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.incidents.admission import Admitted, NotAdmitted, RecordUnknown, UnreadableRecord
from reconciler.source.git_source import Desired, GitRecordSource, GitSource
from tests.reconciler.cluster_harness import ClusterHarness
from tests.reconciler.harness import START, NodeHarness

VALID = timedelta(seconds=60)


@pytest.fixture
def cluster(harness: NodeHarness, tmp_path: Path) -> ClusterHarness:
    return ClusterHarness([harness], tmp_path)


@pytest.fixture
def git_source(cluster: ClusterHarness) -> GitSource:
    return cluster.git_source(cluster.repository())


def test_configuration_and_open_records_are_read(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource
) -> None:
    cluster.order(harness)
    git_source.read(START)
    desired = git_source.desired
    assert desired.config is not None
    assert desired.open_records == (harness.path,)
    orders = GitRecordSource(desired, VALID)
    assert isinstance(orders.judge(harness.path, START), Admitted)
    assert orders.stands(harness.path, START) is True
    assert orders.stands("other", START) is False
    assert orders.owner(harness.path) == "approver@example.com"


def test_before_the_first_read_nothing_is_known(harness: NodeHarness) -> None:
    orders = GitRecordSource(Desired(), VALID)
    assert isinstance(orders.judge(harness.path, START), RecordUnknown)
    assert orders.stands(harness.path, START) is None
    assert orders.owner(harness.path) == ""


def test_what_was_read_before_a_repair_was_seen_does_not_say_that_its_record_is_missing(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource
) -> None:
    git_source.read(START)
    seen = START + timedelta(seconds=1)
    before = GitRecordSource(git_source.desired, VALID, seen)
    assert before.judge(harness.path, seen) == RecordUnknown("Git was read before this repair was seen")
    assert before.stands(harness.path, seen) is None
    git_source.read(seen)
    after = GitRecordSource(git_source.desired, VALID, seen)
    assert isinstance(after.judge(harness.path, seen), UnreadableRecord)
    assert after.stands(harness.path, seen) is False
    cluster.order(harness)
    git_source.read(seen)
    known = GitRecordSource(git_source.desired, VALID, seen + timedelta(seconds=1))
    assert isinstance(known.judge(harness.path, seen), Admitted)


def test_a_branch_of_incidents_that_nobody_made_yet_is_no_trouble(
    cluster: ClusterHarness, git_source: GitSource
) -> None:
    git_source.read(START)
    assert (git_source.desired.open_records, git_source.desired.read_at) == ((), START)


def test_a_host_that_is_away_leaves_what_was_read_and_its_age_grows(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource
) -> None:
    cluster.order(harness)
    git_source.read(START)
    Path(cluster.host.url).rename(f"{cluster.host.url}-away")
    with capture_logs() as logs:
        for seconds in (10, 20, 61):
            git_source.read(START + timedelta(seconds=seconds))
    assert [each["event"] for each in logs] == ["git could not be read"]

    orders = GitRecordSource(git_source.desired, VALID)
    assert isinstance(orders.judge(harness.path, START + timedelta(seconds=60)), Admitted)
    assert orders.judge(harness.path, START + timedelta(seconds=61)) == RecordUnknown("Git cannot be read")
    assert orders.stands(harness.path, START + timedelta(seconds=61)) is True
    assert orders.stands("other", START + timedelta(seconds=61)) is None

    Path(f"{cluster.host.url}-away").rename(cluster.host.url)
    with capture_logs() as logs:
        git_source.read(START + timedelta(seconds=70))
    assert [each["event"] for each in logs] == ["git was read again"]
    assert git_source.desired.read_at == START + timedelta(seconds=70)


def test_after_a_start_without_host_the_mirror_is_known_but_not_valid(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource
) -> None:
    cluster.order(harness)
    git_source.read(START)
    Path(cluster.host.url).rename(f"{cluster.host.url}-away")
    again = cluster.git_source(cluster.repository())
    again.read(START)
    assert again.desired.config is not None
    assert again.desired.open_records == (harness.path,)
    assert isinstance(GitRecordSource(again.desired, VALID).judge(harness.path, START), RecordUnknown)


@pytest.mark.parametrize("bad", [b"a: [", b"kind: x", None], ids=["not YAML", "no config", "deleted"])
def test_a_configuration_with_errors_leaves_the_last_good_one_and_is_named_once(
    cluster: ClusterHarness, git_source: GitSource, bad: bytes | None
) -> None:
    git_source.read(START)
    good = git_source.desired.config
    cluster.host.commit("main", {"cluster.yaml": bad})
    with capture_logs() as logs:
        for seconds in (1, 2):
            git_source.read(START + timedelta(seconds=seconds))
    assert [each["event"] for each in logs] == ["configuration refused"]
    assert logs[0]["faults"][0].startswith("cluster.yaml:")
    assert git_source.desired.config is good
    assert git_source.desired.read_at == START + timedelta(seconds=2)


def test_the_configuration_of_another_cluster_is_refused(
    cluster: ClusterHarness, git_source: GitSource
) -> None:
    cluster.host.commit("main", {"cluster.yaml": cluster.config.replace(b"name: example}", b"name: other}")})
    git_source.read(START)
    assert git_source.desired.config is None


@pytest.mark.parametrize("branch", ["main", "incidents"])
def test_a_history_that_was_rewritten_is_not_known_to_be_valid(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource, branch: str
) -> None:
    cluster.order(harness)
    git_source.read(START)
    cluster.host.rewrite(branch)
    git_source.read(START + timedelta(seconds=61))
    assert git_source.desired.open_records == (harness.path,)
    assert isinstance(
        GitRecordSource(git_source.desired, VALID).judge(harness.path, START + timedelta(seconds=61)),
        RecordUnknown,
    )


def test_an_incident_that_closes_over_an_open_record_refuses_it(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource
) -> None:
    cluster.order(harness)
    cluster.host.commit("incidents", {f"{harness.directory}/closed.yaml": b"x: 1\n"})
    git_source.read(START)
    assert git_source.desired.open_records == ()
    judged = GitRecordSource(git_source.desired, VALID).judge(harness.path, START)
    assert isinstance(judged, NotAdmitted)
    assert judged.reason == "the incident is closed"


def test_what_has_ended_is_not_read_again(
    cluster: ClusterHarness, harness: NodeHarness, git_source: GitSource
) -> None:
    cluster.order(harness)
    cluster.host.commit(
        "incidents", {f"{harness.directory}/{name}": b"x: 1\n" for name in ("closed.yaml", "outcome-1.yaml")}
    )
    git_source.read(START)
    assert git_source.desired.files == {}
    assert GitRecordSource(git_source.desired, VALID).stands(harness.path, START) is True
