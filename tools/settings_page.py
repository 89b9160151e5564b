"""Writes docs/settings.md from the settings classes: key, variable, type, default and docstring of each.

The classes are read and not imported, because a docstring below a field exists in the source only.
`python -m tools.settings_page` writes the page, `--check` exits with 1 when the page is stale.
"""

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.generated import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "settings.md"
PREFIX = "CLUSTERWRIGHT_"


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of a settings class. `default` is its source text, None when the setting is required."""

    name: str
    annotation: ast.expr
    default: str | None
    text: str


@dataclass(frozen=True, slots=True)
class SettingsClass:
    """A settings class: its name, its docstring and its fields."""

    name: str
    text: str
    fields: tuple[Setting, ...]


Classes = Mapping[str, SettingsClass]


def sources() -> dict[str, Path]:
    """Return the settings modules by program, in the order of the page."""
    agent = next(
        path for path in (ROOT / "checks/agent/settings.py", ROOT / "checks/settings.py") if path.exists()
    )
    return {"reconciler": ROOT / "reconciler/settings.py", "bot": ROOT / "bot/settings.py", "agent": agent}


def classes(source: str) -> dict[str, SettingsClass]:
    """Return the classes of a module by name, from its source."""
    found = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    return {node.name: _class(node) for node in found}


def without_text(known: Classes) -> list[str]:
    """Return the settings that have no docstring of their own, as `Class.field`."""
    return [f"{each.name}.{field.name}" for each in known.values() for field in each.fields if not field.text]


def page(modules: Mapping[str, Classes]) -> str:
    """Return the page's tables; those that a table holds follow it."""
    shared, bot, agent = modules["reconciler"], modules["bot"], modules["agent"]
    parts: list[str] = []
    for table, own, known in (("", shared, shared), ("", bot, {**shared, **bot}), ("agent", agent, agent)):
        for root in _roots(own):
            parts += _tables(table, root, known)
    return "\n\n".join(parts)


def _roots(own: Classes) -> list[SettingsClass]:
    """Return the classes that hold settings and are not a table of another class."""
    fields = [field for each in own.values() for field in each.fields]
    held = {inner.name for field in fields if (inner := _nested(field, own))}
    return [each for each in own.values() if each.fields and each.name not in held]


def _class(node: ast.ClassDef) -> SettingsClass:
    return SettingsClass(node.name, ast.get_docstring(node) or "", tuple(_fields(node.body)))


def _fields(body: list[ast.stmt]) -> Iterator[Setting]:
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if "ClassVar" in ast.unparse(statement.annotation):
            continue
        default = ast.unparse(statement.value) if statement.value else None
        yield Setting(statement.target.id, statement.annotation, default, _text(below))


def _text(below: ast.stmt | None) -> str:
    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
        return " ".join(str(below.value.value).split())
    return ""


def _tables(table: str, root: SettingsClass, known: Classes) -> Iterator[str]:
    nested = [(field, inner) for field in root.fields if (inner := _nested(field, known))]
    plain = [field for field in root.fields if not _nested(field, known)]
    if plain:
        heading = f"## `[{table}]`" if table else "## Top level"
        yield "\n\n".join([heading, root.text.partition("\n")[0], "\n".join(_rows(table, plain))])
    for field, inner in nested:
        yield from _tables(f"{table}.{field.name}".lstrip("."), inner, known)


def _nested(field: Setting, known: Classes) -> SettingsClass | None:
    names = (node.id for node in ast.walk(field.annotation) if isinstance(node, ast.Name))
    return next((known[name] for name in names if name in known), None)


def _rows(table: str, fields: Iterable[Setting]) -> Iterator[str]:
    yield "| key | variable | type | default | meaning |"
    yield "|---|---|---|---|---|"
    for each in fields:
        keys = [*filter(None, table.split(".")), each.name]
        variable = PREFIX + "__".join(keys).upper()
        default = "required" if each.default is None else _plain(each.default)
        yield f"| `{each.name}` | `{variable}` | {_type(each.annotation)} | {default} | {each.text} |"


def _plain(default: str) -> str:
    """Return a default as TOML writes it. A path is its text; None is a key that is left out."""
    value = default.removeprefix("Path(").removesuffix(")") if default.startswith("Path(") else default
    return "none" if value == "None" else f"`{value}`".replace("'", '"')


def _type(annotation: ast.expr) -> str:
    match annotation:
        case ast.BinOp(left=left):
            return _type(left)
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            return f"{_type(first)}{_bounds(annotation)}"
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            options = choices.elts if isinstance(choices, ast.Tuple) else [choices]
            return " or ".join(f"`{ast.unparse(each)}`" for each in options).replace("'", '"')
        case ast.Name(id=name):
            return _NAMES.get(name, name.lower())
        case _:
            return ast.unparse(annotation)


def _bounds(annotation: ast.expr) -> str:
    """Return the limits of a number, such as ` 1 to 64`; patterns are told in the setting's docstring."""
    calls = [node for node in ast.walk(annotation) if isinstance(node, ast.Call)]
    limits = {each.arg: ast.unparse(each.value) for call in calls for each in call.keywords}
    return f", {limits['ge']} to {limits['le']}" if limits.keys() >= {"ge", "le"} else ""


_NAMES = {
    "str": "text",
    "Name": "text",
    "int": "integer",
    "float": "number",
    "bool": "true or false",
    "Path": "path",
    "Seconds": "seconds",
}
"""Annotation → how people call it. `Seconds` are numbers above 0 and up to a day."""


if __name__ == "__main__":
    modules = {name: classes(path.read_text(encoding="utf-8")) for name, path in sources().items()}
    sys.exit(main(PAGE, page(modules), "tools.settings_page", sys.argv[1:]))
