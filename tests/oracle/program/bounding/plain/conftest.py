"""Questions about programs alone: stacks of GCN layers have no kernels of their own here."""

from __future__ import annotations

import pytest

from butfor.oracle import registry
from butfor.oracle.program.oracle import program_oracle


@pytest.fixture(autouse=True)
def _programs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FAST_ORACLES", [program_oracle])
