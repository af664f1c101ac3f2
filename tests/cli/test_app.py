"""Which commands there are, what their help says, and command lines that cannot be understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.cli import main
from butfor.cli.app import COMMANDS

if TYPE_CHECKING:
    from cli_folders import Refused

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str, capsys: Capture) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Usage: butfor {command}" in out
    assert f"butfor {command}" in out.partition("Example")[2]


def test_help_and_version(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    assert "Examples:" in out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == "0.1.0\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["expalin"], 'Unknown command "expalin". Did you mean "explain"'),
        (["--frobnicate"], "frobnicate"),
        (["explain", "--frobnicate", "3"], "Unknown option: --frobnicate. See: butfor explain --help"),
        (["explain", "--frobnicate=3"], "Unknown option: --frobnicate. See: butfor explain --help"),
        (["explain", "--qwxyz", "3"], "Unknown option: --qwxyz. See: butfor explain --help"),
        (
            ["explain", "--certifcate"],
            r"Unknown option: --certifcate. Did you mean --certificate\? See: butfor explain",
        ),
        (["explain", "--metod=greedy"], r"Unknown option: --metod. Did you mean --method\? See: butfor explain"),
        (["explain", "--ot", "x"], r"Did you mean --out\?"),
        (["explain", "17"], "Unexpected argument '17'"),
        (["explain", "--limit", "x"], "--limit"),
        (["explain", "--limit", "0"], "--limit"),
        (["explain", "--seed", "-1"], "--seed"),
        (["explain", "--nodes"], "--nodes requires an argument"),
        (["explain", "--method", "magic"], 'Invalid value "magic" for --method. Choose from: .*"greedy"'),
        (["train", "tree-cycles"], "--out"),
        (["evaluate"], "RESULTS"),
        (["explain"], "one model is needed and none is given"),
    ],
)
def test_what_cannot_be_parsed(refused: Refused, argv: list[str], message: str) -> None:
    refused(argv, message)
