"""The policy on the node: what it may say, and what a wrong one does."""

import json
from pathlib import Path

import pytest

from checks import registry
from checks.agent.policy_file import PolicyFile
from checks.policy import Expected, Policy, PolicyError, decode

NAMES = frozenset({"ib-state", "clock"})


def place(directory: Path, content: object, pool: str = "h100") -> None:
    """Write as a kubelet does: the new file replaces the old one."""
    new = directory / "new"
    new.write_text(content if isinstance(content, str) else json.dumps(content))
    new.replace(directory / f"{pool}.json")


def test_a_policy_says_what_is_expected_and_which_checks_are_off() -> None:
    policy = decode(
        b'{"expected":{"ibPorts":["mlx5_0"],"gpus":8},"host":{"zombies":5},"disabled":["clock"]}', NAMES
    )
    assert policy.expected == Expected(ib_ports=("mlx5_0",), gpus=8)
    assert (policy.host.zombies, policy.disabled) == (5, ("clock",))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[]", "document: Expected `object`"),
        ('{"expected": {"gpu": 8}}', "expected: Object contains unknown field `gpu`"),
        ('{"expected": {"gpus": "8"}}', "expected.gpus: Expected `int | null`"),
        ('{"expected": {"ibPorts": ["mlx5_0", "../x"]}}', "expected.ibPorts[1]: Expected `str` matching"),
        ('{"host": {"mountSeconds": 0}}', "host.mountSeconds: Expected `float` > 0.0"),
        ('{"disabled": ["clocks"]}', "disabled: clocks: no such check; there are clock, ib-state"),
    ],
)
def test_a_wrong_policy_names_the_key(content: str, said: str) -> None:
    with pytest.raises(PolicyError) as error:
        decode(content.encode(), NAMES)
    assert said in str(error.value)


def test_a_changed_file_is_taken_up_and_an_unchanged_one_is_not_read_again(tmp_path: Path) -> None:
    mounted = PolicyFile(tmp_path, NAMES)
    mounted.refresh("h100")
    assert mounted.current == Policy()
    place(tmp_path, {"expected": {"gpus": 8}})
    mounted.refresh("h100")
    first = mounted.current
    assert first.expected.gpus == 8
    mounted.refresh("h100")
    assert mounted.current is first
    place(tmp_path, {"expected": {"gpus": 4}})
    mounted.refresh("h100")
    assert mounted.current.expected.gpus == 4


def test_a_wrong_file_leaves_the_last_good_policy_and_says_so_until_it_is_mended(tmp_path: Path) -> None:
    mounted = PolicyFile(tmp_path, NAMES)
    place(tmp_path, {"expected": {"gpus": 8}})
    mounted.refresh("h100")
    for content in ("{", {"expected": {"gpus": -1}}):
        place(tmp_path, content)
        mounted.refresh("h100")
        mounted.refresh("h100")
        assert mounted.trouble.startswith("h100.json: ")
        assert mounted.current.expected.gpus == 8
    place(tmp_path, {})
    mounted.refresh("h100")
    assert (mounted.trouble, mounted.current) == ("", Policy())


def test_a_file_that_was_removed_means_the_defaults(tmp_path: Path) -> None:
    mounted = PolicyFile(tmp_path, NAMES)
    place(tmp_path, {"expected": {"gpus": 8}})
    mounted.refresh("h100")
    (tmp_path / "h100.json").unlink()
    mounted.refresh("h100")
    assert mounted.current == Policy()


@pytest.mark.parametrize("pool", ["", "a200", "../h100", "H100"])
def test_another_pool_or_none_has_a_policy_of_its_own(tmp_path: Path, pool: str) -> None:
    place(tmp_path, {"expected": {"gpus": 8}})
    mounted = PolicyFile(tmp_path, NAMES)
    mounted.refresh("h100")
    mounted.refresh(pool)
    assert mounted.current == Policy()


def test_a_place_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "h100.json").mkdir()
    mounted = PolicyFile(tmp_path, NAMES)
    mounted.refresh("h100")
    assert "cannot be read" in mounted.trouble


def test_checks_have_names_of_their_own_and_say_what_they_are_about() -> None:
    names = [each.name for each in registry.CHECKS]
    assert len(names) == len(set(names))
    assert all(each.about and each.every_seconds >= 10 for each in registry.CHECKS)
