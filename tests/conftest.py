"""Fixtures shared by all tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    # Two pytest workers on two cores: more threads than that only get in each other's way.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_old_sequential() -> Iterator[None]:
    # PyG names the class of each `Sequential` by a random number below 16^6, and takes an old one for a new one that
    # has the same: among thousands in one process, some do.
    yield
    for name in [name for name in sys.modules if name.startswith("torch_geometric.nn.sequential_Sequential_")]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference material beside the project; tests that need it skip where it is missing."""
    if not SHARED.is_dir():
        pytest.skip(f"reference material is not at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def reference(shared: Path) -> Path:
    """The published graphs, weights and results."""
    return shared / "data" / "reference"
