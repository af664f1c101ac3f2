"""`widget`: the explorer inside a notebook."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from butfor.boundary.extras import optional_imports
from butfor.boundary.printable import printable
from butfor.errors import ButforError, InputError, one_line
from butfor.pages.assets import script, style_within
from butfor.pages.explore import explorer_of

if TYPE_CHECKING:
    from torch import nn

    from butfor.pages.explorer import Explorer
    from butfor.problem.target import Pair

__all__ = ["answer_message", "widget"]


def widget(model: nn.Module, data: Any, target: int | Pair | None = None, **settings: Any) -> Any:
    """The explorer as a widget, in Jupyter, VS Code, Colab or marimo.

    It shows the same page as `explore` and needs no server of its own: questions travel through the notebook.

    Args:
        model: as for `explain`.
        data: one graph; or several, to explore each as a whole.
        target: what is shown first: a node, a `Pair`, or the number of a graph.
        settings: further arguments of `prepare`: ``task``, ``node_type``, ``goal``, ``space``, ``directed``, ...

    Raises:
        GraphError, ModelError, InputError: as for `explore`; or anywidget is not installed.

    Examples:
        >>> import butfor
        >>> model, data = butfor.example()
        >>> widget = butfor.widget(model, data, 605)  # the last line of a notebook's cell
        >>> type(widget).__name__
        'ExplorerWidget'
    """
    return _kind()(explorer_of(model, data, target, **settings))


@cache
def _kind() -> Any:
    """The class of the widget, which needs an optional package."""
    with optional_imports():
        import anywidget
        import traitlets

    class ExplorerWidget(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = script("explorer", last="explorer/widget.js")
        _css = style_within("explorer", ".butfor-widget")
        opened = traitlets.Dict().tag(sync=True)

        def __init__(self, explorer: Explorer) -> None:
            super().__init__(opened=explorer.opened())
            self._explorer = explorer
            self.on_msg(lambda _, message, __: self.send(answer_message(self._explorer, message)))

        def close(self) -> None:
            """Stop what is being searched, and take the widget away."""
            self._explorer.searches.close()
            super().close()

    return ExplorerWidget


def answer_message(explorer: Explorer, message: Any) -> dict[str, Any]:
    """The answer to a message of the page, with its number; an error is an answer too."""
    number = message.get("id") if isinstance(message, dict) else None
    try:
        body = message.get("body") if isinstance(message, dict) else None
        if not isinstance(body, dict):
            raise InputError("a question is an object")
        return {"id": number, "answer": explorer.answer(message.get("verb"), body)}
    except ButforError as problem:
        return {"id": number, "error": printable(str(problem))}
    except Exception as problem:  # whatever the user's model raised: the page says so and goes on
        return {"id": number, "error": printable(one_line(problem))}
