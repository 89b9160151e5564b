"""Watches: from a revision, through selectors, to their end, over compaction and restart."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kube.kube import Kube

MERGE = "application/merge-patch+json"
Event = dict[str, Any]

BOOKMARK_TRIES = 4
"""The real server gives no promise that a watch of few seconds gets its bookmark."""


@pytest.fixture
def leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


@contextmanager
def watching(kube: Kube, path: str, **params: str) -> Iterator[Iterator[Event]]:
    """The events of an open watch."""
    with (
        kube.client() as client,
        client.stream("GET", path, params={"watch": "true", "timeoutSeconds": "20", **params}) as reply,
    ):
        assert reply.status_code == 200
        yield (json.loads(line) for line in reply.iter_lines())


def told(event: Event) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


def revision(kube: Kube, path: str) -> str:
    version: str = kube.request("GET", path)[1]["metadata"]["resourceVersion"]
    return version


def test_a_watch_tells_every_change_after_its_revision(kube: Kube, leases: str) -> None:
    kube.request("POST", leases, {"metadata": {"name": "before"}})
    since = revision(kube, leases)
    kube.request("POST", leases, {"metadata": {"name": "a"}})
    with watching(kube, leases, resourceVersion=since) as events:
        assert told(next(events)) == ("ADDED", "a")
        kube.request("PATCH", leases + "/a", {"spec": {"holderIdentity": "x"}}, MERGE)
        changed = next(events)
        assert told(changed) == ("MODIFIED", "a")
        assert changed["object"]["spec"] == {"holderIdentity": "x"}
        assert (changed["object"]["kind"], changed["object"]["apiVersion"]) == (
            "Lease",
            "coordination.k8s.io/v1",
        )
        kube.request("DELETE", leases + "/a")
        gone = next(events)
        assert told(gone) == ("DELETED", "a")
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in (changed, gone)]
        assert versions == sorted(set(versions))


def test_a_watch_without_a_revision_begins_with_what_is_there(kube: Kube, leases: str) -> None:
    kube.request("POST", leases, {"metadata": {"name": "a"}})
    with watching(kube, leases) as events:
        assert told(next(events)) == ("ADDED", "a")
        kube.request("POST", leases, {"metadata": {"name": "b"}})
        assert told(next(events)) == ("ADDED", "b")


def test_leaving_the_selection_looks_like_a_deletion(kube: Kube, leases: str) -> None:
    since = revision(kube, leases)
    with watching(kube, leases, resourceVersion=since, labelSelector="l=x") as events:
        kube.request("POST", leases, {"metadata": {"name": "other", "labels": {"l": "y"}}})
        kube.request("POST", leases, {"metadata": {"name": "a", "labels": {"l": "x"}}})
        assert told(next(events)) == ("ADDED", "a")
        kube.request("PATCH", leases + "/a", {"metadata": {"labels": {"l": "y"}}}, MERGE)
        assert told(next(events)) == ("DELETED", "a")
        kube.request("PATCH", leases + "/a", {"metadata": {"labels": {"l": "x"}}}, MERGE)
        assert told(next(events)) == ("ADDED", "a")


def test_one_object_can_be_watched_by_its_name(kube: Kube, leases: str) -> None:
    since = revision(kube, leases)
    with watching(kube, leases, resourceVersion=since, fieldSelector="metadata.name=b") as events:
        kube.request("POST", leases, {"metadata": {"name": "a"}})
        kube.request("POST", leases, {"metadata": {"name": "b"}})
        assert told(next(events)) == ("ADDED", "b")


def test_the_pods_of_one_node_can_be_watched(kube: Kube, namespace: str, node: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    since = revision(kube, "/api/v1/pods")
    with watching(
        kube, "/api/v1/pods", resourceVersion=since, fieldSelector=f"spec.nodeName={node}"
    ) as events:
        for name, where in (("a", "elsewhere"), ("b", node)):
            spec = {"nodeName": where, "containers": [{"name": "c", "image": "example"}]}
            kube.request("POST", pods, {"metadata": {"name": name}, "spec": spec})
        assert told(next(events)) == ("ADDED", "b")
    for name in "ab":
        kube.request("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})


def test_a_watch_ends_in_time_and_says_how_far_it_got(kube: Kube, leases: str) -> None:
    since = revision(kube, leases)
    kube.request("POST", leases, {"metadata": {"name": "a"}})
    options = {"resourceVersion": since, "timeoutSeconds": "4", "allowWatchBookmarks": "true"}
    for _ in range(BOOKMARK_TRIES):
        with watching(kube, leases, **options) as events:
            found = list(events)
        assert told(found[0]) == ("ADDED", "a")
        if found[1:]:
            break
    assert {event["type"] for event in found[1:]} == {"BOOKMARK"}
    mark = found[-1]["object"]
    assert (mark["kind"], mark["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")
    assert int(mark["metadata"]["resourceVersion"]) >= int(found[0]["object"]["metadata"]["resourceVersion"])


def test_a_revision_that_is_forgotten_is_gone(kube: Kube, leases: str) -> None:
    since = revision(kube, leases)
    kube.request("POST", leases, {"metadata": {"name": "a"}})
    kube.request("DELETE", leases + "/a")
    kube.compact()
    with watching(kube, leases, resourceVersion=since) as events:
        event = next(events)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


def test_a_restart_ends_watches_and_keeps_the_data(kube: Kube, leases: str) -> None:
    since = revision(kube, leases)
    kube.request("POST", leases, {"metadata": {"name": "a"}})
    with watching(kube, leases, resourceVersion=since) as events:
        assert told(next(events)) == ("ADDED", "a")
        kube.pause()
        try:
            with pytest.raises((StopIteration, httpx.TransportError)):
                next(events)
            with pytest.raises(httpx.TransportError):
                kube.request("GET", leases)
        finally:
            kube.resume()
    with watching(kube, leases, resourceVersion=since) as events:
        assert next(events)["object"]["code"] == 410
    _, listed = kube.request("GET", leases)
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    kube.request("POST", leases, {"metadata": {"name": "b"}})
    with watching(kube, leases, resourceVersion=listed["metadata"]["resourceVersion"]) as events:
        assert told(next(events)) == ("ADDED", "b")
