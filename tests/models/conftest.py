"""A model to train and to save."""

from __future__ import annotations

import pytest
import torch

from butfor.models import PaperGCN


@pytest.fixture
def model() -> PaperGCN:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return PaperGCN(10, 2).eval()
