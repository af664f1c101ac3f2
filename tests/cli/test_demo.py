"""``butfor demo``: everything at work once."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from butfor.cli import main
from butfor.datasets import GENERATORS
from butfor.methods import Exact, KeepEgo
from butfor.paper import PAPER
from butfor.runs import read_results
from page_runs import content

if TYPE_CHECKING:
    from pathlib import Path


Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_demo_writes_models_results_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from butfor.cli import demo as module

    def quick(data: object, seed: int, progress: bool) -> object:
        from butfor import models

        model = models.PaperGCN(10, 2)
        return model, models.train(model, data, epochs=300, lr=0.01, seed=seed)  # type: ignore[arg-type]

    def few(seed: int) -> object:
        data = GENERATORS["tree-cycles"](seed)
        data.test_mask[torch.from_numpy(np.flatnonzero(data.test_mask)[:-40])] = False
        return data

    monkeypatch.setattr(module, "PAPER", {"tree-cycles": PAPER["tree-cycles"]})
    monkeypatch.setattr(module, "GENERATORS", {"tree-cycles": few})
    monkeypatch.setattr(module, "trained_gcn", quick)
    monkeypatch.setattr(module, "_methods", lambda _: {"exact": Exact(), "keep-ego": KeepEgo()})
    mine = tmp_path / "the demo" / "tree-cycles" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    for _ in range(2):  # the second time over what the first has written
        assert main(["demo", "--out", str(tmp_path / "the demo")]) == 0
    out = capsys.readouterr().out
    assert "numbers need not match" in out
    assert "paper: 1HOP" in out
    written = {path.name for path in mine.parent.iterdir()}
    assert written >= {"mine.txt", "model.json", "model.safetensors", "exact.jsonl", "keep-ego.jsonl"}
    assert "counterfactual-1.png" in written
    assert f"open {mine.parent / 'report.html'} in a browser" in out
    report = content(mine.parent / "report.html")
    assert report["title"] == "Tree-Cycles, test nodes"
    sentences = [record["sentence"] for record in report["results"]]
    assert sentences == [str(result) for result in read_results(mine.parent / "exact.jsonl")]
    assert len(read_results(mine.parent / "exact.jsonl")) == 40
    assert json.loads((mine.parent / "model.json").read_text())["data"]["name"] == "tree-cycles"
    hints = re.findall(r"^  butfor (.*)$", out, flags=re.MULTILINE)[-3:]
    assert [hint.split()[0] for hint in hints] == ["show", "evaluate", "explain"]
    for hint in hints:
        assert main(shlex.split(hint)) == 0, capsys.readouterr().err
