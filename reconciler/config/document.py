"""YAML text → plain values with their line numbers: the first stage of the strict reader.

PyYAML's C parser parses the text, and this module builds the values. It refuses what PyYAML and kubectl read
differently instead of guessing: duplicate keys, aliases, merge keys, tags, and plain scalars such as `yes`, `010` and
`2026-01-01`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

MAX_BYTES = 1 << 20
"""Largest file that is read; a cluster's configuration is a thousandth of it."""

_TAG = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in one file, and its line (from 1)."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document. `lines` maps the path of each value to the line of its key or item."""

    file: str
    value: Any
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int:
        """Return the line of `path`, or of the nearest parent that is in the file."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)


def documents(file: str, content: bytes) -> tuple[list[Document], list[Problem]]:
    """Return the documents of a file and every problem with their syntax; never raises."""
    if len(content) > MAX_BYTES:
        return [], [Problem(file, 1, f"is larger than {MAX_BYTES} bytes")]
    found: list[Document] = []
    faults: list[Problem] = []
    try:
        for node in yaml.compose_all(content, Loader=yaml.CSafeLoader):
            build = _ValueBuilder(file)
            value = build.value(node, ())
            found.append(Document(file, value, build.lines))
            faults += build.faults
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        faults.append(Problem(file, line, f"is not YAML: {error.problem or error.context}"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        faults.append(Problem(file, 1, f"is not YAML: {' '.join(str(error).split())}"))
    except RecursionError:
        faults.append(Problem(file, 1, "is nested too deeply"))
    return [each for each in found if each.value is not None], faults


class _ValueBuilder:
    """Builds one document's value, collecting lines and faults on the way."""

    def __init__(self, file: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.faults: list[Problem] = []
        self._file = file
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._seen:
            self._fault(self.lines[path], "aliases (*name) are not read; write the value out")
            return None
        self._seen.add(id(node))
        match node:
            case yaml.MappingNode():
                return dict(self._items(node, path))
            case yaml.SequenceNode():
                return [self.value(each, (*path, index)) for index, each in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._scalar(node)
            case _:
                self._fault(node.start_mark.line + 1, "is of no known form")
                return None

    def _items(self, node: yaml.MappingNode, path: KeyPath) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != f"{_TAG}str":
                line = key.start_mark.line + 1
                self._fault(line, "a key must be text; merge keys (<<) are not read, the rest needs quotes")
                continue
            if key.value in seen:
                self._fault(key.start_mark.line + 1, f"{key.value}: is a duplicate")
                continue
            seen.add(key.value)
            self.lines[(*path, key.value)] = key.start_mark.line + 1
            yield key.value, self.value(value, (*path, key.value))

    def _scalar(self, node: yaml.ScalarNode) -> str | int | float | bool | None:
        match node.tag.removeprefix(_TAG):
            case "str":
                return str(node.value)
            case "null":
                return None
            case "bool" if node.value in ("true", "false"):
                return bool(node.value == "true")
            case "int" if _INTEGER.fullmatch(node.value):
                return int(node.value)
            case "float" if _FLOAT.fullmatch(node.value):
                return float(node.value)
            case _:
                text = f"{node.value}: programs read this differently; put it in quotes"
                self._fault(node.start_mark.line + 1, text)
                return None

    def _fault(self, line: int, text: str) -> None:
        self.faults.append(Problem(self._file, line, text))
