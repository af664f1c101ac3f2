"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    # Two pytest workers on two cores: more threads than that only get in each other's way.
    torch.set_num_threads(1)


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
