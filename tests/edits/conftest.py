"""What tests of edits share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from votes import voters

if TYPE_CHECKING:
    from torch_geometric.data import Data


@pytest.fixture
def star() -> Data:
    """Node 0 with votes of 1 from 1, 2 and 3; node 4, which votes -5, and 5 are apart."""
    return voters([0.5, 1, 1, 1, -5, 0], [(0, 1), (0, 2), (0, 3), (4, 5)])
