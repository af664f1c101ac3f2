"""The explorer inside a notebook: questions and answers travel as messages."""

from __future__ import annotations

import re
from typing import Any

import pytest

import butfor
from butfor.errors import InputError
from butfor.pages.widget import answer_message
from butfor.testing import random_problem
from explorers import node_explorer


def test_messages_are_answered_with_their_numbers() -> None:
    explorer = node_explorer()
    said = answer_message(explorer, {"id": 3, "verb": "predict", "body": {"target": 0, "edits": []}})
    assert said["id"] == 3
    assert said["answer"] == explorer.answer("predict", {"target": 0, "edits": []})


@pytest.mark.parametrize("message", [None, 3, {}, {"id": 1}, {"id": 1, "verb": "x", "body": {}}, {"id": 1, "body": []}])
def test_bad_messages_are_answered_too(message: Any) -> None:
    said = answer_message(node_explorer(), message)
    assert said["error"]
    assert "answer" not in said


def test_the_widget_carries_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = random_problem(3, nodes=12, density=0.3)
    widget = butfor.widget(model, data, 0)
    assert widget.opened["first"] == 0
    assert "export default { render }" in widget._esm
    assert not re.search(r"^import ", widget._esm, re.MULTILINE)
    assert widget._css.startswith(".butfor-widget {")
    assert ":root" not in widget._css
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._handle_custom_msg({"id": 7, "verb": "predict", "body": {"target": 0, "edits": []}}, [])
    assert sent[0]["id"] == 7
    assert sent[0]["answer"]["allowed"]
    widget.close()


def test_without_anywidget_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from butfor.pages import widget

    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    widget._kind.cache_clear()
    with pytest.raises(InputError, match=re.escape("pip install 'butfor[notebook]'")):
        butfor.widget(*random_problem(3))
    widget._kind.cache_clear()
