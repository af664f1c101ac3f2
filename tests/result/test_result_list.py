"""A list of results: a list like any other that shows itself as a table, and becomes a table or a file."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
import torch
from torch_geometric.nn import GCN, global_mean_pool

import butfor
from butfor import ResultList, Status
from butfor.errors import InputError, StoreError
from butfor.result.table import COLUMNS
from butfor.testing import random_problem
from sample_results import NOTHING, RESULT

if TYPE_CHECKING:
    from pathlib import Path

IMPOSSIBLE = replace(NOTHING, target=18, status=Status.IMPOSSIBLE, lower_bound=None)
FAILED = replace(NOTHING, target=19, status=Status.FAILED, before=butfor.Prediction.unknown(), note="it broke")
SOME = ResultList([RESULT, IMPOSSIBLE, FAILED])


def rows(page: str) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in ElementTree.fromstring(page).iter("tr")]


def test_it_is_a_list() -> None:
    plain = [RESULT, IMPOSSIBLE, FAILED]
    assert plain == SOME
    assert plain == SOME
    assert isinstance(SOME, list)
    assert SOME[0] is RESULT
    assert type(SOME[:2]) is ResultList
    assert SOME[:2] == plain[:2]
    assert pickle.loads(pickle.dumps(SOME)) == SOME


def test_it_is_told_in_a_line() -> None:
    assert repr(SOME) == str(SOME) == "<3 results: 1 found, 1 impossible, 1 failed>"
    assert repr(SOME[:1]) == "<1 result: 1 found>"
    assert repr(ResultList()) == "<0 results>"


def test_it_is_a_table_in_a_notebook() -> None:
    head, *body = rows(SOME._repr_html_())
    assert head == ["target", "status", "before → after", "size", "lower bound", "in a sentence"]
    assert body[0] == ["node 17", "found", "'motif' (0.93) → 'base' (0.81)", "2", "1", str(RESULT)]
    assert body[1] == ["node 18", "impossible", "'motif' (0.93)", "–", "∞", str(IMPOSSIBLE)]
    assert body[2][:4] == ["node 19", "failed", "–", "–"]


def test_of_many_the_first_are_shown() -> None:
    many = ResultList(replace(RESULT, target=number) for number in range(340))
    page = many._repr_html_()
    assert len(rows(page)) == 41
    assert "and 300 more" in page
    assert "340 results: 340 found" in page
    assert "more" not in ResultList(many[:40])._repr_html_()


def test_names_are_escaped() -> None:
    evil = replace(RESULT, names=((17, "<b>&</b>"),), before=butfor.Prediction(1, "<i>", 0.5))
    page = ResultList([evil])._repr_html_()
    assert rows(page)[1][0] == "node <b>&</b>"
    assert "<b>" not in page
    assert "<i>" not in page


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    SOME.save(path)
    again = butfor.load_results(path)
    assert list(again) == SOME
    assert again.to_frame().equals(SOME.to_frame())
    assert SOME.to_frame().columns == list(COLUMNS)
    ResultList().save(tmp_path / "none.jsonl")
    assert list(butfor.load_results(tmp_path / "none.jsonl")) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        SOME.save(path)
    assert path.read_text() == "mine"
    with pytest.raises(StoreError, match="exists already"):
        SOME.save(tmp_path)
    with pytest.raises(StoreError, match="cannot write"):
        SOME.save(tmp_path / "nowhere" / "results.jsonl")
    with pytest.raises(StoreError, match="node 17 is in this list twice"):
        ResultList([RESULT, RESULT]).save(tmp_path / "twice.jsonl")
    assert sorted(tmp_path.iterdir()) == [path]


def test_other_tables_are_refused() -> None:
    with pytest.raises(InputError, match="there are no tables of 'arrow'"):
        SOME.to_frame("arrow")


class GraphModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gnn, self.last = GCN(4, 8, num_layers=2), torch.nn.Linear(8, 2)

    def forward(self, x, edge_index, batch=None):
        return self.last(global_mean_pool(self.gnn(x, edge_index), batch))


def test_every_way_to_explain_several_targets_gives_one(tmp_path: Path) -> None:
    model, data = random_problem(1)
    several = butfor.explain(model, data, [1, 2])
    assert type(several) is ResultList
    assert butfor.prepare(model, data).explain([1, 2]) == several
    assert type(butfor.prepare(model, data).explain([1, 2])) is ResultList
    assert type(butfor.explain(model, data, [])) is ResultList
    graphs = butfor.explain(GraphModel().eval(), [random_problem(seed)[1] for seed in range(2)], method=butfor.Greedy())
    assert type(graphs) is ResultList
    graphs.save(tmp_path / "graphs.jsonl")
    assert list(butfor.load_results(tmp_path / "graphs.jsonl")) == graphs
