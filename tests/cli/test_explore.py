"""``butfor explore`` prints the address of the page, and ends with Ctrl-C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butfor.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def never_waiting(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was opened in the browser; the server ends as by Ctrl-C."""
    from butfor.pages.server import Server

    opened: list[str] = []

    def wait(server: Server) -> None:
        server.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "wait", wait)
    monkeypatch.setattr("webbrowser.open", opened.append)
    return opened


def test_the_address_is_printed_and_opened(
    trained: Path, never_waiting: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", "--checkpoint", str(trained), "--node", "3"]) == 0
    out, err = capsys.readouterr()
    (address,) = never_waiting
    assert f"the explorer is at {address}" in out
    assert "the explorer has ended" in out
    assert "Ctrl-C" in err
    assert main(["explore", "--checkpoint", str(trained), "--no-browser"]) == 0
    assert len(never_waiting) == 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--node", "99999"], "99999"),
        (["--node", "1-3"], "--node names 3 targets; begin with one"),
        (["--node", "1", "--link", "1-2"], "--node and --link are given together"),
        (["--number", "7"], "7"),
        (["--port", "70000"], "port"),
        (["--wanted", "nothing"], "nothing"),
    ],
)
def test_bad_flags(
    trained: Path, never_waiting: list[str], capsys: pytest.CaptureFixture[str], flags: list[str], sentence: str
) -> None:
    assert main(["explore", "--checkpoint", str(trained), *flags]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not never_waiting
