"""Flags of ``butfor explain`` that make no sense: one line, and nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli_folders import Refused, explain

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--evaluations", "0"], "a budget of 0 evaluations"),
        (["--evaluations", "1.5"], r"--evaluations: 1.5 is no whole number\. See: butfor explain --help"),
        (["--seconds", "-3"], "a budget of -3.0 seconds"),
        (["--seconds", "nan"], "a budget of nan seconds"),
        (["--limit", "2.5"], "--limit: 2.5 is no whole number"),
        (["--seed", "1.5"], "--seed: 1.5 is no whole number"),
        (["--seed", "-1"], 'Invalid value "-1" for --seed'),
        (["--k", "1.5"], "--k: 1.5 is no whole number"),
        (["--width", "2.7"], "--width: 2.7 is no whole number"),
        (["--method", "cf-gnn", "--epochs", "1.5"], "--epochs: 1.5 is no whole number"),
        (["--method", "cf-gnn", "--lr", "1e308"], r"lr is 1e\+308"),
        (["--method", "cf-gnn", "--start", "inf"], "start is inf; give a finite number"),
        (["--wanted", "7"], "class 7 is wanted, but the model has classes 0 to 1"),
        (["--wanted", "cat"], "'cat' is no class"),
        (["--wanted", ""], "'' is no class"),
        (["--wanted", "\x1b[2J"], r"'\\x1b\[2J' is no class"),
        (["--least", "-1"], "least margin is -1"),
        (["--least", "nan"], "least margin is nan"),
        (["--least", "inf"], "least margin is inf"),
        (["--probability", "nan"], "least probability is nan"),
        (["--threshold", "0.5"], "a threshold is for a model that returns one number"),
        (["--nodes", "\0"], r"--nodes '\\x00' is neither all"),
        (["--links", "0-1"], "does not say how it predicts links"),
        (["--graphs", "9"], r"graph 9 is not there \(0 to 0\)"),
        (["--space", "."], r"cannot read \.: it is a folder, not a file"),
        (["--space", "\0"], r"\\x00 cannot be read"),
        (["--protect", "3"], "'3' is no edge"),
        (["--protect", "3-17"], "3–17, which is not in this graph"),
        (["--protect", "3-99"], r"node 99 is not in this graph \(0 to 23\)"),
    ],
)
def test_flags_that_make_no_sense(refused: Refused, rings: Path, flags: list[str], message: str) -> None:
    refused(explain(rings, *flags, "--out", str(rings / "new.jsonl")), message)
