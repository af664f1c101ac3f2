"""The hyper-parameters of methods as flags."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from butfor.cli import main
from butfor.cli.hyperparameters import make_method
from butfor.methods import CFGNN, METHODS, Exact, Greedy, KeepEgo, Method, RandomPerturbation, RemoveSubgraph
from butfor.runs import read_results
from cli_folders import Refused, explain

if TYPE_CHECKING:
    from pathlib import Path


Capture = pytest.CaptureFixture[str]


# What no command line can write: an explainer, its memory, and what makes the same search quicker.
NO_FLAGS = ("explainer", "memory", "tuning")


def test_every_plain_field_of_every_method_has_a_flag(capsys: Capture) -> None:
    assert main(["explain", "--help"]) == 0
    out = capsys.readouterr().out
    for name, method in METHODS.items():
        panel = out.partition(f"--method {name} ─")[2].partition("╰")[0]
        for item in fields(method):  # type: ignore[arg-type]
            assert (f"--{item.name.replace('_', '-')}" in panel) == (item.name not in NO_FLAGS), (name, item.name)


@pytest.mark.parametrize(
    ("flags", "method"),
    [
        (
            ["exact", "--k", "2", "--all-smallest", "--incumbent", "random"],
            Exact(True, 2, incumbent=RandomPerturbation()),
        ),
        (["exact", "--width", "none", "--incumbent", "none"], Exact(width=None)),
        (["cf-gnn", "--epochs", "3", "--clip", "1.5", "--keep", "first"], CFGNN(epochs=3, clip=1.5, keep="first")),
        (["cf-gnn", "--epochs", "3", "--no-distance-gradient"], CFGNN(epochs=3, distance_gradient=False)),
        (["cf-gnn", "--epochs", "3", "--fallback", "keep-ego"], CFGNN(epochs=3, fallback=KeepEgo())),
        (["cf-gnn", "--published-choices", "--epochs", "3"], CFGNN.published(epochs=3)),
        (
            ["cf-gnn", "--published-choices", "--epochs", "3", "--clip", "none"],
            replace(CFGNN.published(epochs=3), clip=None),
        ),
        (["greedy", "--width", "none"], Greedy(width=None)),
        (["remove-subgraph", "--epochs", "2", "--size", "2"], RemoveSubgraph(epochs=2, size=2)),
        (["remove-subgraph", "--epochs", "2", "--size", "ground-truth"], RemoveSubgraph(epochs=2)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_flags_become_hyper_parameters(trained: Path, tmp_path: Path, flags: list[str], method: Method) -> None:
    path = tmp_path / "cfs.jsonl"
    argv = ["explain", "--checkpoint", str(trained), "--nodes", "600", "--method", *flags, "--out", str(path)]
    assert main(argv) == 0
    assert [result.method for result in read_results(path)] == [method.record()]


def test_a_method_without_flags_is_its_default() -> None:
    assert all(make_method(name, None) == method() for name, method in METHODS.items())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lr", "0.1"], "--lr belongs to cf-gnn and prbcd and remove-subgraph, not to exact"),
        (["--method", "cf-gnn", "--width", "3"], "--width belongs to exact and greedy and descent, not to cf-gnn"),
        (["--method", "random", "--published-choices"], "belongs to cf-gnn, not to random"),
        (["--fallback", "greedy"], "--fallback belongs to cf-gnn and prbcd and grbcd, not to exact"),
        (["--incumbent", "magic"], 'Invalid value "magic" for --incumbent'),
        (["--method", "cf-gnn", "--fallback", "none"], 'Invalid value "none" for --fallback'),
        (["--method", "cf-gnn", "--lr", "none"], 'Invalid value for --lr: unable to convert "none"'),
        (["--method", "greedy", "--width", "null"], 'Invalid value for --width: unable to convert "null"'),
        (["--width", "0"], "width is 0"),
        (["--width", "wide"], "--width"),
        (["--tuning", "1"], "Unknown option: --tuning"),
        (["--method", "cf-gnn", "--lr", "-1"], "lr is -1"),
        (["--method", "cf-gnn", "--lr", "nan"], "lr is nan"),
        (["--method", "cf-gnn", "--optimizer", "lbfgs"], 'Invalid value "lbfgs" for --optimizer'),
        (["--method", "remove-subgraph", "--size", "all"], "--size"),
    ],
)
def test_hyper_parameters_that_make_no_sense(refused: Refused, rings: Path, flags: list[str], message: str) -> None:
    refused(explain(rings, *flags, "--out", str(rings / "new.jsonl")), message)
