"""The stand-in NVML library, built once, and a child that loads it through the real pynvml."""

import compileall
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.gpu.nvml_process import NvmlChild
from tests.checks.gpu.harness import ONE, TWO
from tests.lab.missing import require
from tests.lab.nvml.library import Machine, build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with libnvidia-ml.so.1."""
    require(None if shutil.which("cc") else "no C compiler here; `make test` says how to install one")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with compiled pynvml, as in the image: compiling it costs 10 MB and half a second."""
    directory = tmp_path_factory.mktemp("bytecode")
    found = importlib.util.find_spec("pynvml")
    assert found is not None
    assert found.origin is not None
    before, sys.pycache_prefix = sys.pycache_prefix, str(directory)
    try:
        assert compileall.compile_file(found.origin, quiet=1)
    finally:
        sys.pycache_prefix = before
    return directory


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Two healthy H100s."""
    return Machine(tmp_path / "nvml-state").add(ONE, TWO).write()


@pytest.fixture
def environment(machine: Machine, library: Path, bytecode: Path) -> dict[str, str]:
    """Environment of a child that sees the machine."""
    return {**machine.environment(library), "PYTHONPYCACHEPREFIX": str(bytecode)}


@pytest.fixture
def child(environment: dict[str, str]) -> Iterator[NvmlChild]:
    """A child, closed at the end."""
    child = NvmlChild(environment, deadline_seconds=10.0)
    yield child
    child.close()
