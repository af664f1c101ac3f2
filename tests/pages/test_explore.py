"""`explore` prepares a model and a graph, or several graphs, and opens the page."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import butfor
from butfor.errors import InputError
from butfor.pages.explore import explorer_of
from butfor.testing import random_problem
from explorers import LinkModel


def test_the_page_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    server = butfor.explore(*random_problem(3), wait=False)
    server.close()
    assert opened == [server.url]
    butfor.explore(*random_problem(3), wait=False, browser=False).close()
    assert len(opened) == 1


def test_waiting_ends_with_an_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also in a script that has imported IPython, as packages for notebooks do."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("threading.Thread.join", interrupt)
    with pytest.raises(KeyboardInterrupt):
        butfor.explore(*random_problem(3), browser=False)
    assert "Ctrl-C ends it" in capsys.readouterr().err


def test_a_notebook_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=object))
    butfor.explore(*random_problem(3), browser=False).close()


def test_the_task_follows_from_the_target() -> None:
    model, data = random_problem(3)
    assert explorer_of(model, data).opened()["task"] == "node"
    assert explorer_of(model, data, 3).opened()["first"] == 3
    goal = butfor.Goal(threshold=0.0)
    assert explorer_of(LinkModel(model), data, butfor.Pair(0, 3), goal=goal).opened()["task"] == "link"


def test_bad_arguments() -> None:
    model, data = random_problem(3)
    with pytest.raises(InputError, match="the node is 99"):
        explorer_of(model, data, 99)
    with pytest.raises(InputError, match="but the model was prepared for a node"):
        explorer_of(model, data, butfor.Pair(0, 1), task="node")
    with pytest.raises(InputError, match="there are no graphs"):
        explorer_of(model, [])
    with pytest.raises(InputError, match="port"):
        butfor.explore(model, data, port=-1)
