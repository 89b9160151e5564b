"""Small checks that compose: each takes a value and its JSON pointer and yields what is wrong.

Written from Slack's published limits, and on purpose without a look at the product's own validator, so that
the two can disagree.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

Check = Callable[[Any, str], Iterator[str]]


def problem(what: str, pointer: str) -> str:
    """One message in Slack's wording."""
    return f"{what} [json-pointer:{pointer}]"


def string(most: int, least: int = 1, pattern: str | None = None) -> Check:
    """A string of `least` to `most` characters."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield problem("must be a string", pointer)
        elif len(value) < least:
            yield problem(f"must be more than {least - 1} characters", pointer)
        elif len(value) > most:
            yield problem(f"must be less than {most + 1} characters", pointer)
        elif pattern and not re.search(pattern, value):
            yield problem("failed to match pattern", pointer)

    return check


def number(least: int, most: int) -> Check:
    """An integer within bounds; a bool is not one."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if not isinstance(value, int) or isinstance(value, bool):
            yield problem("must be an integer", pointer)
        elif not least <= value <= most:
            yield problem(f"must be between {least} and {most}", pointer)

    return check


def boolean(value: Any, pointer: str) -> Iterator[str]:
    """True or false, not the words."""
    if not isinstance(value, bool):
        yield problem("must be a boolean", pointer)


def anything(value: Any, pointer: str) -> Iterator[str]:
    """Whatever it is, it is fine."""
    del value, pointer
    return iter(())


def choice(*words: str) -> Check:
    """One of some words."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if value not in words:
            yield problem(f"must be a valid enum value: {', '.join(words)}", pointer)

    return check


def items(each: Check, most: int, least: int = 1) -> Check:
    """A list of `least` to `most` values."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield problem("must be an array", pointer)
            return
        if len(value) < least:
            yield problem(f"no less than {least} items allowed", pointer)
        if len(value) > most:
            yield problem(f"no more than {most} items allowed", pointer)
        for index, item in enumerate(value):
            yield from each(item, f"{pointer}/{index}")

    return check


def shape(fields: Mapping[str, Check], required: Collection[str] = ()) -> Check:
    """An object with exactly these fields, some of them required."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield problem("must be an object", pointer)
            return
        for name in sorted(set(required) - set(value)):
            yield problem(f"missing required field: {name}", pointer)
        for name, inner in value.items():
            if name not in fields:
                yield problem(f"invalid additional property: {name}", pointer)
            else:
                yield from fields[name](inner, f"{pointer}/{name}")

    return check


def by_type(kinds: Mapping[str, Check]) -> Check:
    """An object whose `type` says which of the checks applies."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield problem("must be an object", pointer)
        elif "type" not in value:
            yield problem("missing required field: type", pointer)
        elif not isinstance(value["type"], str) or value["type"] not in kinds:
            yield problem(f"unsupported type: {value['type']}", f"{pointer}/type")
        else:
            yield from kinds[value["type"]](value, pointer)

    return check


def both(*checks: Check) -> Check:
    """All checks apply."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        for one in checks:
            yield from one(value, pointer)

    return check


def either(*names: str) -> Check:
    """At least one of the fields is there."""

    def check(value: Any, pointer: str) -> Iterator[str]:
        if isinstance(value, dict) and not any(name in value for name in names):
            yield problem(f"must define either {' or '.join(f'`{name}`' for name in names)}", pointer)

    return check
