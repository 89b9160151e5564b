"""Role based access: may this identity do this?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.kube.embedded.errors import Obj
    from tests.lab.kube.embedded.state import State
    from tests.lab.kube.embedded.tokens import Identity

GROUP = "rbac.authorization.k8s.io"
DISCOVERY = [
    "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz",
    "/version", "/version/",
]  # fmt: skip
PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]


@dataclass(frozen=True, slots=True)
class Question:
    """One access; for a path that is no resource only verb and path are set."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def _role(name: str, *rules: Obj) -> Obj:
    return _named("ClusterRole", name) | {"rules": list(rules)}


def _bound(name: str, *groups: str) -> Obj:
    subjects = [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups]
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    return _named("ClusterRoleBinding", name) | {"roleRef": role, "subjects": subjects}


def _named(kind: str, name: str) -> Obj:
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": {"name": name}}


def _reviews(group: str, *resources: str) -> Obj:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["create"]}


BOOTSTRAP = (
    _role("cluster-admin", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
          {"nonResourceURLs": ["*"], "verbs": ["*"]}),
    _role("system:discovery", {"nonResourceURLs": DISCOVERY, "verbs": ["get"]}),
    _role("system:public-info-viewer", {"nonResourceURLs": PUBLIC, "verbs": ["get"]}),
    _role("system:basic-user",
          _reviews("authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
          _reviews("authentication.k8s.io", "selfsubjectreviews")),
    _role("system:auth-delegator", _reviews("authentication.k8s.io", "tokenreviews"),
          _reviews("authorization.k8s.io", "subjectaccessreviews")),
    _bound("cluster-admin", "system:masters"),
    _bound("system:discovery", "system:authenticated"),
    _bound("system:basic-user", "system:authenticated"),
    _bound("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
)  # fmt: skip
"""The roles kube-apiserver creates at its start, as far as anything here relies on them."""


def allowed(state: State, identity: Identity, question: Question) -> str | None:
    """The sentence that says by which binding an access is allowed; None if it is not."""
    if identity.superuser:
        return "system:masters may do anything"
    for binding in state.store.all(f"clusterrolebindings.{GROUP}"):
        if _subject_of(binding, identity) and _grants(state, binding, "", question):
            role, name = binding["roleRef"]["name"], binding["metadata"]["name"]
            return f'RBAC: allowed by ClusterRoleBinding "{name}" of ClusterRole "{role}" to {identity.user}'
    if not question.namespace:
        return None
    for binding in state.store.all(f"rolebindings.{GROUP}", question.namespace):
        if _subject_of(binding, identity) and _grants(state, binding, question.namespace, question):
            role, name = binding["roleRef"]["name"], f"{binding['metadata']['name']}/{question.namespace}"
            kind = binding["roleRef"]["kind"]
            return f'RBAC: allowed by RoleBinding "{name}" of {kind} "{role}" to {identity.user}'
    return None


def _subject_of(binding: Obj, identity: Identity) -> bool:
    namespace = binding["metadata"].get("namespace", "")
    for subject in binding.get("subjects") or []:
        match subject["kind"]:
            case "User" if subject["name"] == identity.user:
                return True
            case "Group" if subject["name"] in identity.groups:
                return True
            case "ServiceAccount":
                account = f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject['name']}"
                if account == identity.user:
                    return True
    return False


def _grants(state: State, binding: Obj, namespace: str, question: Question) -> bool:
    reference = binding["roleRef"]
    if reference["kind"] == "Role":
        role = state.store.get(f"roles.{GROUP}", namespace, reference["name"])
    else:
        role = state.store.get(f"clusterroles.{GROUP}", "", reference["name"])
    return role is not None and any(_covers(rule, question) for rule in role.get("rules") or [])


def _covers(rule: Obj, question: Question) -> bool:
    if not _has(rule.get("verbs"), question.verb):
        return False
    if question.path:
        return any(_path_covers(pattern, question.path) for pattern in rule.get("nonResourceURLs") or [])
    names = rule.get("resourceNames") or []
    return (
        _has(rule.get("apiGroups"), question.group)
        and _resource_covers(rule.get("resources") or [], question)
        and (not names or question.name in names)
    )


def _has(values: list[str] | None, wanted: str) -> bool:
    return values is not None and ("*" in values or wanted in values)


def _resource_covers(resources: list[str], question: Question) -> bool:
    full = f"{question.resource}/{question.subresource}" if question.subresource else question.resource
    wildcard = f"*/{question.subresource}" if question.subresource else "*"
    return "*" in resources or full in resources or wildcard in resources


def _path_covers(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern
