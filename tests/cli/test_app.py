"""Which commands there are, what their help says, and command lines that cannot be understood."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import butfor
from butfor.cli import main
from butfor.cli.app import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

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
    assert capsys.readouterr().out == f"{butfor.__version__}\n"


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


RUN = [sys.executable, "-c", "import sys; from butfor.cli import main; sys.exit(main())"]


@pytest.mark.slow
def test_completion_is_installed_for_the_shell(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash", "XDG_DATA_HOME": str(tmp_path / "share")}
    done = subprocess.run(
        [*RUN, "--install-completion", "--shell", "bash"], env=home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (script,) = [path for path in tmp_path.rglob("*") if path.is_file() and path.name == "butfor"]
    text = script.read_text()
    for command in ("explain", "report", "explore", "--checkpoint"):
        assert command in text
    subprocess.run(["bash", "-n", str(script)], check=True)
