"""A Ray cluster on this machine, started once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.executors import Ray

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def ray() -> Iterator[Ray]:
    """Two workers of a Ray cluster."""
    package = pytest.importorskip("ray")
    executor = Ray(workers=2)
    assert executor.size == 2
    yield executor
    package.shutdown()
