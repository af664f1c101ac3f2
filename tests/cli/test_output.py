"""What a terminal is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch_geometric.data import Data

from butfor.cli import main
from butfor.cli.output import called
from butfor.datasets import save_graph

if TYPE_CHECKING:
    import pytest

LOUD = """
import torch
from torch_geometric.nn import SAGEConv

class Loud(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = SAGEConv(1, 2)

    def forward(self, x, edge_index):
        return self.layer(x, edge_index)

loud = Loud
"""


def cycle(nodes: int, **fields: object) -> Data:
    ring = torch.arange(nodes)
    edge_index = torch.cat([torch.stack([ring, ring.roll(1)]), torch.stack([ring.roll(1), ring])], 1)
    return Data(x=torch.arange(nodes).float()[:, None], edge_index=edge_index, **fields)


ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m\r\nsecond line"


def test_names_reach_the_terminal_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loud_models.py").write_text(LOUD)
    data = cycle(12, node_ids=[f"{ESCAPES}{node}" for node in range(12)], class_names=[f"a{ESCAPES}", f"b{ESCAPES}"])
    data.y = torch.arange(12) % 2
    save_graph(data, "graph.npz")
    base = ["--model", "loud_models:loud", "--graph", "graph.npz"]
    said = ""
    for argv, code in (
        (["explain", *base, "--nodes", "all"], 0),
        (["explain", *base, "--nodes", "all", "--out", "cfs.jsonl"], 0),
        (["show", "cfs.jsonl"], 0),
        (["evaluate", "cfs.jsonl"], 0),
        (["datasets", "graph.npz"], 0),
        (["explain", *base, "--nodes", f"no\x1b[2J{ESCAPES}"], 2),
        (["explain", *base, "--wanted", ESCAPES], 2),
        (["datasets", f"missing{ESCAPES}"], 2),
    ):
        assert main(argv) == code, argv
        out, err = capsys.readouterr()
        said += out + err
        assert len(err.splitlines()) <= 1
    assert "\\x1b" in said
    assert not any(letter in said for letter in "\x1b\x07\u202e\x9b\r")


def test_hints_call_the_program_so_that_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "my env" / "butfor"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", [str(program)])
    assert called() == f"'{program}'"
    monkeypatch.setenv("PATH", str(program.parent))
    assert called() == "butfor"
    monkeypatch.setattr("sys.argv", ["pytest"])
    assert called() == "butfor"
