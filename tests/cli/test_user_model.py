"""A model of the user's own, made by a function that the command line names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import save_file

from butfor.api import explain
from butfor.cli import main
from butfor.datasets import GENERATORS
from butfor.models import PaperGCN, load_checkpoint
from butfor.runs import read_results

if TYPE_CHECKING:
    from pathlib import Path

    from cli_folders import Refused


def test_a_model_of_your_own_is_explained_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    (tmp_path / "my_own_models.py").write_text(
        "from butfor.models import PaperGCN\ndef gcn():\n    return PaperGCN(10, 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    arguments = ["--model", "my_own_models:gcn", "--weights", str(trained / "model.safetensors")]
    path = tmp_path / "cfs.jsonl"
    assert main(["explain", *arguments, "--graph", "tree-cycles", "--nodes", "600", "--out", str(path)]) == 0
    data = GENERATORS["tree-cycles"](0)
    assert read_results(path) == [explain(load_checkpoint(trained)[0], data, 600)]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules and weights that are of no use."""
    (tmp_path / "bad_models.py").write_text(
        "from butfor.models import PaperGCN\n"
        "number = 3\n"
        "def none(): return None\n"
        "def fails(): raise RuntimeError('no luck')\n"
        "def leaves(): raise SystemExit(0)\n"
        "class Unspeakable(Exception):\n    def __str__(self): raise RuntimeError\n"
        "def unspeakable(): raise Unspeakable()\n"
        "def stops(): raise GeneratorExit()\n"
        "def layer(): return PaperGCN\n"
        "async def waits(): pass\n"
        "def wants(size): return PaperGCN(3, size)\n"
        "def gcn(): return PaperGCN(3, 2)\n"
    )
    (tmp_path / "worse_models.py").write_text("import surely_not_there\n")
    (tmp_path / "leaving_models.py").write_text("raise SystemExit('usage')\n")
    save_file(PaperGCN(3, 4).state_dict(), tmp_path / "four.safetensors")
    torch.save(PaperGCN(3, 2).state_dict(), tmp_path / "pickled.safetensors")
    save_file(PaperGCN(3, 2).state_dict(), tmp_path / "whole.safetensors")
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "whole.safetensors").read_bytes()[:-100])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (["gcn"], "must name a factory"),
        (["no_such_module:gcn"], "cannot import no_such_module"),
        (["worse_models:gcn"], "cannot import worse_models .*surely_not_there"),
        (["leaving_models:gcn"], "cannot import leaving_models .*SystemExit: usage"),
        (["bad_models:gin"], "bad_models has no gin"),
        (["bad_models:number"], "number is a int, not a function"),
        (["bad_models:none"], "returned a NoneType"),
        (["bad_models:fails"], "RuntimeError: no luck"),
        (["bad_models:leaves"], "bad_models:leaves failed: SystemExit: 0"),
        (["bad_models:unspeakable"], "bad_models:unspeakable failed: Unspeakable"),
        (["bad_models:stops"], "bad_models:stops failed: GeneratorExit"),
        (["bad_models:layer"], "returned a type; it must return a torch.nn.Module"),
        (["bad_models:waits"], "returned a coroutine; it must return a torch.nn.Module"),
        (["bad_models:wants"], "TypeError: .*size"),
        (["bad_models:gcn", "--weights", "four.safetensors"], r"lin\.\w+ .* has shape"),
        (["bad_models:gcn", "--weights", "cut.safetensors"], "truncated"),
        (["bad_models:gcn", "--weights", "pickled.safetensors"], "could run code and is not opened"),
        (["bad_models:gcn", "--weights", "missing"], "cannot read missing: No such file"),
    ],
)
def test_models_that_cannot_be_used(
    refused: Refused, rings: Path, models: Path, model: list[str], message: str
) -> None:
    argv = ["explain", "--model", *model, "--graph", str(rings / "graph.npz"), "--out", str(rings / "new.jsonl")]
    refused(argv, message)
