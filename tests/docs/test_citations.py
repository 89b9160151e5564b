"""Every rule, table and section that a docstring or comment cites stands in docs/."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("checks", "reconciler", "bot", "tests")

TEXTS = {
    tokenize.STRING,
    *(getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)),
}
"""Tokens of strings; since Python 3.12 an f-string is cut into tokens of its own."""

GPUS = frozenset({"K40", "K80", "M40", "M60"})
"""Names of NVIDIA cards that look like rules."""

LETTERED = re.compile(r"(?<![\w.-])([KMTS])(\d{1,2})([a-z]?)(?:-\1(\d{1,2}))?(?![\w:]|\.\w)")
SECTION = re.compile(
    r"(?<!DESIGN )(?<!reference, )\b(?:sections?|tables?) (\d(?:\.\d)?(?:(?:, | and |, and )\d\.\d)*)", re.I
)
LABEL = re.compile(
    r"^[rf]*[\"']{1,3}([13]\.[1-9]) (?!s\b|ms|min|h\b|sec|[GMk]i?B|%)|\((?:[KMTS]\d+, )*([13]\.[1-9])\)"
)
"""A reason (`"3.7 gpu-lost"`), which is no measure (`"1.5 s"`), and a bare number in parentheses."""

SAFETY = re.compile(r"\b(?<![KMTS])rules? (\d{1,2})\b", re.I)
DESIGN = re.compile(r"DESIGN section (\d)", re.I)


def cited(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of what the comments and strings of `source` cite; `safety N` is a safety rule."""
    for line, text in texts(source):
        for name in sorted(names(re.sub(r"\n\s*#?\s*", " ", text))):
            yield line, name


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each string and of each block of comments."""
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if block and not (
            token.type in (tokenize.COMMENT, tokenize.NL) and token.start[0] <= block[-1].end[0] + 1
        ):
            yield block[0].start[0], "\n".join(each.string for each in block)
            block = []
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            block.append(token)
        elif token.type in TEXTS:
            yield token.start[0], token.string


def names(text: str) -> set[str]:
    """Return what one comment or string cites."""
    found = set()
    for letter, first, suffix, last in LETTERED.findall(text):
        found |= {f"{letter}{number}" for number in range(int(first), int(last or first) + 1)}
        found = (found - {f"{letter}{first}"}) | {f"{letter}{first}{suffix}"}
    for listed in SECTION.findall(text):
        found |= set(re.findall(r"\d(?:\.\d)?", listed))
    for label in LABEL.findall(text):
        found |= {each for each in label if each}
    found |= {f"safety {number}" for number in SAFETY.findall(text)}
    found |= {f"DESIGN section {number}" for number in DESIGN.findall(text)}
    return found - GPUS


def stated() -> set[str]:
    """Return every name that docs/node-checks.md and docs/safety.md define."""
    checks = (ROOT / "docs/node-checks.md").read_text(encoding="utf-8")
    safety = (ROOT / "docs/safety.md").read_text(encoding="utf-8")
    return {
        *re.findall(r"^#+ (\d(?:\.\d)?) ", checks, re.MULTILINE),
        *re.findall(r"^- \*\*([KMTS]\d+[a-z]?)\*\* ", checks, re.MULTILINE),
        *(f"safety {number}" for number in re.findall(r"^#+ Rule (\d+): ", safety, re.MULTILINE)),
        # The older way to cite the rules of docs/safety.md.
        "DESIGN section 4",
    }


def python_files() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_every_citation_in_the_code_names_a_rule_that_docs_state() -> None:
    known = stated()
    unknown = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in python_files()
        if path != Path(__file__)
        for line, name in cited(path.read_text(encoding="utf-8"))
        if name not in known
    ]
    assert unknown == []


def test_the_code_cites_rules_of_every_kind() -> None:
    kinds = {
        re.sub(r"[\d.]+[a-z]?", "#", name)
        for path in python_files()
        if path != Path(__file__)
        for _, name in cited(path.read_text(encoding="utf-8"))
    }
    assert kinds >= {"K#", "M#", "T#", "S#", "#", "safety #"}


def test_docs_state_all_numbers_without_a_gap() -> None:
    known = stated()
    for letter, last in {"K": 20, "M": 7, "T": 25, "S": 4, "safety ": 17}.items():
        assert known >= {f"{letter}{number}" for number in range(1, last + 1)}
    assert known >= {*map(str, range(10)), "1.1", "1.2", "1.3", "1.4", *(f"3.{n}" for n in range(1, 8))}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Text (node checks, rule T99)."""', ["T99"]),
        ("x = 1  # as rule K5 says", ["K5"]),
        ('"""Reads /dev/kmsg (rules K3-K5, K9a and K12)."""', ["K12", "K3", "K4", "K5", "K9a"]),
        ("x = 1\n# As the node checks say (section\n# 3.8), and rule\n# T99.\ny = 2", ["3.8", "T99"]),
        ('"""Numbers (node checks,\n    section 3.8)."""', ["3.8"]),
        ('"""Rows (tables 1.3 and 1.4, section 6)."""', ["1.3", "1.4", "6"]),
        ('"""Faults of NVSwitches (3.6)."""', ["3.6"]),
        ('V = Verdict(f"3.9 {bucket}")', ["3.9"]),
        ('V = Verdict("M6 driver unresponsive")', ["M6"]),
        ('"1.5 s", "3.2 GiB"', []),
        ('"""Identity (DESIGN section 4, rule 2)."""', ["DESIGN section 4", "safety 2"]),
        ('"""Never twice (safety rule 18)."""', ["safety 18"]),
        ('"""At most (repairs reference, section 2 rule 3)."""', ["safety 3"]),
        ('"""Node checks (modifier\nM8)."""', ["M8"]),
        ('"""Tesla K80 and M60 at 2026-11-01T12:00:00Z, version 1.4.2, `XT12`, HTTP/1.1."""', []),
        ("K99 = table[3.8]  # noqa: T201", []),
    ],
)
def test_a_citation_is_found_in_comments_and_strings_alone(source: str, expected: list[str]) -> None:
    assert [name for _, name in cited(source + "\n")] == expected


def test_a_citation_is_found_with_its_line() -> None:
    assert list(cited('\nx = "M1"\n# T2\n')) == [(2, "M1"), (3, "T2")]
