"""Running times: seconds for each node, and how many times as fast as on dense matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reproduction import METHODS, NAMES, QUICK, markdown, reproduce, table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.published


@pytest.mark.slow
def test_seconds_per_node_and_the_ratio_to_the_dense_version(other_reference: Path, tmp_path: Path) -> None:
    reproduce(tmp_path, "time", *QUICK, "--reference", str(other_reference))
    rows = {row["method"]: row for row in table(tmp_path, "time")}
    assert set(rows) >= {"dense", *METHODS}
    dense = float(rows["dense"]["seconds_per_node"])
    for row in rows.values():
        assert float(row["seconds_per_node"]) > 0
        assert float(row["ratio"]) == pytest.approx(dense / float(row["seconds_per_node"]))
    assert float(rows["cf-gnn"]["ratio"]) > 1
    assert {row[1] for row in markdown(tmp_path, "time")[1]} >= set(NAMES)
