from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.config.document import MAX_BYTES, documents
from reconciler.config.reader import ConfigErrors, read
from reconciler.config.schema import Config, RepairPolicy, duration

HEAD = "apiVersion: clusterwright.dev/v1alpha1\n"
CLUSTER = f"""{HEAD}kind: Cluster
metadata: {{name: example}}
spec:
  pools:
    - name: h100
      nodeSelector: {{pool: h100}}
      redfish: {{system: "https://bmc.example.com/redfish/v1/Systems/{{node}}"}}
    - name: rest
      gpusPerNode: 0
"""
ACCESS = f"""{HEAD}kind: Access
metadata: {{name: example}}
spec:
  approvers: [{{name: Example Approver, email: Approver@example.com}}]
"""
POLICY = f"""{HEAD}kind: RepairPolicy
metadata: {{name: example}}
spec:
"""
EMPTY = f"{HEAD}kind: Cluster\nmetadata: {{name: example}}\nspec: "


def files(**texts: str) -> dict[str, bytes]:
    return {f"{name}.yaml": text.encode() for name, text in texts.items()}


def test_a_cluster_repository_becomes_one_value() -> None:
    found = read(files(cluster=CLUSTER, access=ACCESS, policy=f"{POLICY}  drainTimeout: 90s\n"))
    assert isinstance(found, Config)
    assert found.cluster == "example"
    assert found.policy == RepairPolicy(drainTimeout=timedelta(seconds=90))


def test_a_node_belongs_to_the_first_pool_that_selects_it() -> None:
    found = read(files(all=f"{CLUSTER}---\n{ACCESS}"))
    assert isinstance(found, Config)
    assert [found.pool_of(labels).name for labels in ({"pool": "h100", "x": "y"}, {"pool": "a"}, {})] == [
        "h100", "rest", "rest",
    ]  # fmt: skip


@pytest.mark.parametrize("email", ["approver@example.com", "APPROVER@EXAMPLE.COM"])
def test_an_approver_is_found_without_regard_to_case(email: str) -> None:
    found = read(files(cluster=CLUSTER, access=ACCESS))
    assert isinstance(found, Config)
    assert found.approver(email) is not None
    assert found.approver(f"not-{email}") is None


def test_other_files_and_other_api_groups_are_passed_over() -> None:
    other = {"README.md": b"[", "apps/broken.yaml": b"[", "app.yaml": b"apiVersion: v1\nkind: Secret\n"}
    assert isinstance(read({**files(cluster=CLUSTER, access=ACCESS), **other}), Config)


FAULTS = {
    "not YAML": ("a: [", "x.yaml:2: is not YAML: "),
    "a tab": ("a:\n\t- b", "x.yaml:2: is not YAML: "),
    "binary": ("\x00", "x.yaml:1: is not YAML: "),
    "a list": ("- 1", "x.yaml:1: must be a mapping with apiVersion and kind"),
    "no version": ("kind: Cluster", "x.yaml:1: apiVersion: is missing"),
    "unknown kind": (f"{HEAD}kind: Clutser", "x.yaml:2: kind: Clutser: unknown; known are Cluster, Access"),
    "another version": ("apiVersion: clusterwright.dev/v2\nkind: Cluster\n", "x.yaml:1: apiVersion: "),
    "twice": (f"{POLICY}  drainTimeout: 1m\n  drainTimeout: 2m", "x.yaml:6: drainTimeout: is a duplicate"),
    "alias": (f"{POLICY}  drainTimeout: &a 1m\n  bootTimeout: *a", "x.yaml:6: aliases"),
    "merge key": (f"{POLICY}  <<: {{}}", "x.yaml:5: a key must be text; merge keys"),
    "number key": (f"{POLICY}  1: x", "x.yaml:5: a key must be text"),
    "yes": (f"{POLICY}  drainTimeout: yes", "x.yaml:5: yes: programs read this differently"),
    "octal": (f"{POLICY}  maxInRepairPercent: 010", "x.yaml:5: 010: programs read this differently"),
    "sexagesimal": (f"{POLICY}  maxInRepairPercent: 1:30", "x.yaml:5: 1:30: programs read this differently"),
    "date": (f"{POLICY}  drainTimeout: 2026-11-30", "x.yaml:5: 2026-11-30: programs read this differently"),
    "tag": (f"{POLICY}  drainTimeout: !!binary aGk=", "x.yaml:5: aGk=: programs read this differently"),
    "unknown field": (f"{POLICY}  drainTimeuot: 1m", "x.yaml:5: spec.drainTimeuot: unknown field"),
    "no unit": (f"{POLICY}  bootTimeout: 30", 'x.yaml:5: spec.bootTimeout: must be a time such as "90s"'),
    "too long": (f"{POLICY}  drainTimeout: 2h", "x.yaml:5: spec.drainTimeout: Input should be less than"),
    "too many": (f"{POLICY}  maxInRepairPercent: 50", "x.yaml:5: spec.maxInRepairPercent: Input should be"),
    "no node": (
        CLUSTER.replace("{node}", "node"), "x.yaml:8: spec.pools.0.redfish.system: String should match",
    ),
    "pool twice": (CLUSTER.replace("rest", "h100"), "x.yaml:9: spec.pools.1.name: h100: is a duplicate"),
    "no pools": (f"{EMPTY}{{}}", "x.yaml:4: spec.pools: is missing"),
    "empty": (POLICY, "x.yaml:4: spec: must be a mapping"),
    "no list": (f"{EMPTY}{{pools: a}}", "x.yaml:4: spec.pools: must be a list"),
    "no email": (ACCESS.replace("@", "-"), "x.yaml:5: spec.approvers.0.email: String should match"),
    "name": (CLUSTER.replace("example}", "Example}"), "x.yaml:3: metadata.name: String should match"),
    "policy twice": (
        f"{POLICY}  {{}}\n---\n{POLICY}  {{}}",
        "x.yaml:8: kind: RepairPolicy: is a duplicate of the one in x.yaml:2",
    ),
    "no cluster": (f"{POLICY}  {{}}", "cluster.yaml:1: kind: Cluster: is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_named_with_file_and_line(name: str) -> None:
    text, said = FAULTS[name]
    found = read({"x.yaml": text.encode()})
    assert isinstance(found, ConfigErrors)
    assert any(str(fault).startswith(said) for fault in found.faults), str(found)


def test_every_fault_of_every_file_is_reported_at_once() -> None:
    found = read({"b.yaml": f"{POLICY}  a: 1\n  b: yes\n".encode(), "a.yaml": b"- 1"})
    assert isinstance(found, ConfigErrors)
    assert [(each.file, each.line) for each in found.faults] == [
        ("a.yaml", 1),
        ("b.yaml", 5),
        ("b.yaml", 6),
        ("b.yaml", 6),
    ]


@pytest.mark.parametrize("content", [b"[" * 100_000, b"a: " * 2, b"x" * (MAX_BYTES + 1), b"\xff\xfe\x00\xd8"])
def test_hostile_files_are_faults(content: bytes) -> None:
    assert isinstance(read({"x.yaml": content}), ConfigErrors)


@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{}&*!<> \n\"'#|", max_size=60).map(str.encode))
def test_no_bytes_make_the_reader_raise(content: bytes) -> None:
    documents("x.yaml", content)
    read({"x.yaml": content})


@given(st.integers(1, 999_999), st.sampled_from([("s", 1), ("m", 60), ("h", 3600)]))
def test_a_duration_is_a_whole_number_with_its_unit(number: int, unit: tuple[str, int]) -> None:
    assert duration(f"{number}{unit[0]}") == timedelta(seconds=number * unit[1])


@pytest.mark.parametrize("text", ["", "0s", "1", "1d", "1.5h", "-1m", "1 m", "01m", 5, None, True])
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="must be a time such as"):
        duration(text)
