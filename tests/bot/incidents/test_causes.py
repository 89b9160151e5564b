"""Every subsystem that the checks can name has a cause of its own in the bot."""

import ast
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import checks
from bot.incidents.correlate import CAUSES

ROOT = Path(checks.__file__).parent
FIELD = "subsystem"


def subsystems(root: Path) -> set[str]:
    """Return every literal that code or a table under `root` gives to a parameter, field or column `subsystem`."""
    trees = [ast.parse(file.read_text()) for file in sorted(root.rglob("*.py"))]
    positions = {name: place for tree in trees for name, place in _positions(tree)}
    in_code = {text for tree in trees for text in _literals(tree, positions)}
    return in_code | {text for file in root.rglob("*.csv") for text in _column(file)}


def _column(file: Path) -> Iterator[str]:
    lines = (line for line in file.read_text().splitlines() if not line.startswith("#"))
    yield from (row[FIELD] for row in csv.DictReader(lines) if row.get(FIELD))


def _positions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each function and class that takes a subsystem, with its position among the arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [each.arg for each in node.args.args if each.arg != "self"]
        elif isinstance(node, ast.ClassDef):
            fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            names = [each.id for each in fields if isinstance(each, ast.Name)]
        else:
            continue
        if FIELD in names:
            yield node.name, names.index(FIELD)


def _literals(tree: ast.Module, positions: Mapping[str, int]) -> Iterator[str]:
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given = [each.value for each in node.keywords if each.arg == FIELD]
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        place = positions.get(name)
        if place is not None and place < len(node.args):
            given.append(node.args[place])
        for each in given:
            yield from _texts(constants.get(each.id, each) if isinstance(each, ast.Name) else each)


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the literals that an expression may give; what only hands a subsystem on gives none."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp():
            yield from _texts(node.body)
            yield from _texts(node.orelse)
        case _:
            return


def test_the_scan_sees_checks_and_kernel_parsers() -> None:
    assert {
        "xid",
        "sxid",
        "ext4",
        "mce",
        "edac",
        "nvlink",
        "clock",
        "service",
        "agent",
        "slurm",
    } <= subsystems(ROOT)


def test_every_subsystem_of_the_checks_has_a_cause() -> None:
    assert sorted(subsystems(ROOT) - set(CAUSES)) == []
