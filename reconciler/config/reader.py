"""The files of a cluster repository → one Config, or every error with its file and line. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from checks.policy import Policy
from reconciler.config.document import Document, KeyPath, Problem, documents
from reconciler.config.node_checks import policy, with_gpus
from reconciler.config.schema import (
    API_VERSION,
    KINDS,
    AccessObject,
    ClusterObject,
    Config,
    ConfigObject,
    NodeChecksObject,
    RepairPolicy,
    RepairPolicyObject,
)

WORDS = {
    "extra_forbidden": "unknown field",
    "missing": "is missing",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "tuple_type": "must be a list",
}
"""Our wording of the most common schema errors."""


@dataclass(frozen=True, slots=True)
class ConfigErrors:
    """Why there is no Config: at least one fault, in the order of files and lines."""

    faults: tuple[Problem, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))


def read(files: Mapping[str, bytes]) -> Config | ConfigErrors:
    """Return the configuration in the top-level `*.yaml` files of `files` (path → content).

    Documents of other API groups belong to other programs and are ignored.
    """
    faults: list[Problem] = []
    found: list[tuple[Document, ConfigObject]] = []
    for name in sorted(files):
        if "/" in name or not name.endswith(".yaml"):
            continue
        parts, form = documents(name, files[name])
        faults += form
        for document in parts:
            read_object = _object(document)
            if isinstance(read_object, list):
                faults += read_object
            elif read_object is not None:
                found.append((document, read_object))
    if faults:
        return ConfigErrors(tuple(sorted(faults, key=lambda fault: (fault.file, fault.line))))
    faults = [*_repeated(found), *_missing(found), *_pools_twice(found), *_unknown_pools(found)]
    return ConfigErrors(tuple(faults)) if faults else _config(found)


def validation_faults(document: Document, error: ValidationError) -> list[Problem]:
    """Return the schema errors of `document`, each with its line."""
    return [_fault(document, each["loc"], each["type"], each["msg"]) for each in error.errors()]


def _object(document: Document) -> ConfigObject | list[Problem] | None:
    value = document.value
    if not isinstance(value, dict):
        return [Problem(document.file, document.line(()), "must be a mapping with apiVersion and kind")]
    version = value.get("apiVersion")
    if version is None:
        return [Problem(document.file, document.line(()), f"apiVersion: is missing; {API_VERSION} is known")]
    if str(version).split("/")[0] != API_VERSION.split("/")[0]:
        return None
    kind = KINDS.get(str(value.get("kind")))
    if kind is None:
        text = f"kind: {value.get('kind')}: unknown; known are {', '.join(KINDS)}"
        return [Problem(document.file, document.line(("kind",)), text)]
    try:
        found = kind.model_validate(value)
    except ValidationError as error:
        return validation_faults(document, error)
    if isinstance(found, NodeChecksObject):
        policies = (policy(document, where) for where in _policy_places(found))
        faults = [fault for each in policies if isinstance(each, list) for fault in each]
        return faults or found
    return found


def _policy_places(written: NodeChecksObject) -> list[KeyPath]:
    default: list[KeyPath] = [("spec", "default")] if written.spec.default else []
    return [*default, *(("spec", "pools", name) for name in written.spec.pools)]


def _fault(document: Document, where: tuple[int | str, ...], kind: str, text: str) -> Problem:
    said = WORDS.get(kind, text.removeprefix("Value error, "))
    return Problem(document.file, document.line(where), f"{'.'.join(map(str, where)) or 'document'}: {said}")


def _repeated(found: Iterable[tuple[Document, ConfigObject]]) -> list[Problem]:
    first: dict[str, Document] = {}
    faults = []
    for document, each in found:
        if each.kind in first:
            other = first[each.kind]
            text = f"kind: {each.kind}: is a duplicate of the one in {other.file}:{other.line(('kind',))}"
            faults.append(Problem(document.file, document.line(("kind",)), text))
        first.setdefault(each.kind, document)
    return faults


def _missing(found: Iterable[tuple[Document, ConfigObject]]) -> list[Problem]:
    there = {each.kind for _, each in found}
    return [
        Problem(
            f"{kind.lower()}.yaml", 1, f"kind: {kind}: is missing; the repository needs one at its top level"
        )
        for kind in ("Cluster", "Access")
        if kind not in there
    ]


def _pools_twice(found: Iterable[tuple[Document, ConfigObject]]) -> list[Problem]:
    faults = []
    for document, each in found:
        names = [pool.name for pool in each.spec.pools] if isinstance(each, ClusterObject) else []
        for index, name in enumerate(names):
            if name in names[:index]:
                line = document.line(("spec", "pools", index, "name"))
                faults.append(
                    Problem(document.file, line, f"spec.pools.{index}.name: {name}: is a duplicate")
                )
    return faults


def _unknown_pools(found: Iterable[tuple[Document, ConfigObject]]) -> list[Problem]:
    every = tuple(found)
    known = {pool.name for _, each in every if isinstance(each, ClusterObject) for pool in each.spec.pools}
    return [
        Problem(
            document.file,
            document.line(("spec", "pools", name)),
            f"spec.pools.{name}: no such pool; known are {', '.join(sorted(known))}",
        )
        for document, each in every
        if isinstance(each, NodeChecksObject)
        for name in each.spec.pools
        if name not in known
    ]


def _checks(cluster: ClusterObject, found: Iterable[tuple[Document, ConfigObject]]) -> Mapping[str, Policy]:
    """Return the policy of each pool. The documents are already validated."""
    written = next(((document, each) for document, each in found if isinstance(each, NodeChecksObject)), None)
    chosen = {}
    for pool in cluster.spec.pools:
        own = pool.name in written[1].spec.pools if written else False
        place: KeyPath = ("spec", "pools", pool.name) if own else ("spec", "default")
        read_policy = policy(written[0], place) if written and (own or written[1].spec.default) else Policy()
        if isinstance(read_policy, Policy):
            chosen[pool.name] = with_gpus(read_policy, pool.gpus_per_node)
    return chosen


def _config(found: Iterable[tuple[Document, ConfigObject]]) -> Config:
    written = tuple(found)
    every = tuple(each for _, each in written)
    cluster = next(each for each in every if isinstance(each, ClusterObject))
    access = next(each for each in every if isinstance(each, AccessObject))
    repairs = next((each.spec for each in every if isinstance(each, RepairPolicyObject)), RepairPolicy())
    return Config(
        cluster=cluster.metadata.name,
        pools=cluster.spec.pools,
        approvers=access.spec.approvers,
        policy=repairs,
        checks=_checks(cluster, written),
    )
