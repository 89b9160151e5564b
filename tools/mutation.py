"""Small changes to a Python module that its tests ought to notice.

Each mutant is the module's own text with one expression or statement replaced, so lines keep their numbers.
Left alone are annotations, decorators, imports, docstrings, log lines, the words of exceptions, and what runs
only for type checkers.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip
SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip
LOGGERS = ("log", "logger", "logging")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed module. `was` and `now` are the part that differs, each on one line."""

    line: int
    was: str
    now: str
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """Yield every mutant of a module's text, in the order of its lines."""
    tree = ast.parse(text)
    found: list[tuple[Place, Place]] = [(node, changed) for node in _walk(tree) for changed in _changes(node)]
    found += [(test, ast.UnaryOp(ast.Not(), test)) for test in _tests(tree)]
    for node, changed in sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset)):
        now = ast.unparse(changed)
        whole = _replaced(text, node, f"({now})" if isinstance(changed, ast.expr) else now)
        if _compiles(whole):
            yield Mutant(node.lineno, _one_line(ast.unparse(node)), _one_line(now), whole)


Place = ast.expr | ast.stmt


def _walk(node: ast.AST) -> Iterator[Place]:
    """Yield the expressions and statements that may be changed."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _walk(child)


def _tests(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the conditions that are no comparison and no `and`, `or`, `not`: those are changed anyway."""
    for node in _walk(tree):
        if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
            node.test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant
        ):
            yield node.test


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or _is_log_line(node.value)
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")


def _is_log_line(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[0].strip("_") in LOGGERS


def _changes(node: Place) -> Iterator[Place]:
    match node:
        case ast.Compare():
            for table in (FLIPPED, BOUNDARY):
                yield from _compared(node, table)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp() if type(node.op) in SWAPPED:
            yield ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
        case ast.Constant():
            yield from _other_constant(node.value)
        case ast.stmt():
            yield from _weakened(node)


def _other_constant(value: object) -> Iterator[ast.Constant]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str):
        yield ast.Constant("XX" + value)


def _weakened(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield a statement that does nothing in place of one that has an effect, or returns nothing."""
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Raise):
        yield ast.Pass()
    elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))


def _compared(node: ast.Compare, table: dict[type[ast.cmpop], type[ast.cmpop]]) -> Iterator[ast.Compare]:
    for position, operator in enumerate(node.ops):
        if type(operator) in table:
            ops = list(node.ops)
            ops[position] = table[type(operator)]()
            yield ast.Compare(node.left, ops, node.comparators)


def _replaced(text: str, node: Place, now: str) -> str:
    """Put `now` where the node stands; column numbers of `ast` count bytes of UTF-8."""
    lines = text.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    return b"".join([*lines[:first], head, now.encode(), tail, *lines[last + 1 :]]).decode()


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _one_line(text: str, length: int = 90) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= length else joined[: length - 1] + "…"
