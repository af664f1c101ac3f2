"""Every test draws the same random numbers, whichever ran before it."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _same_start() -> None:
    torch.manual_seed(0)
