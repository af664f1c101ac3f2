"""The method that searches, as plain data: what a result says of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MethodRecord"]


@dataclass(frozen=True)
class MethodRecord:
    """A method by its name and hyper-parameters: whatever a file can hold, so that no code has to be imported.

    Attributes:
        name: of its class, such as "Exact".
        settings: its hyper-parameters; a method among them is a record again.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.settings and not self.name.isidentifier():
            return self.name  # the words of a method that told itself in another way
        return f"{self.name}({', '.join(f'{name}={_written(value)}' for name, value in self.settings.items())})"

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        settings = {
            key: value.plain if isinstance(value, MethodRecord) else value for key, value in self.settings.items()
        }
        return {"name": self.name, "settings": settings}

    @classmethod
    def from_text(cls, text: str) -> MethodRecord:
        """From ``Exact(k=1, width=64)``, as results were written before they had records."""
        name, _, _ = text.partition("(")
        try:
            call = ast.parse(text, mode="eval").body
            if isinstance(call, ast.Call) and all(word.arg for word in call.keywords) and not call.args:
                return cls(name, {str(word.arg): _value(word.value) for word in call.keywords})
        except (SyntaxError, RecursionError, ValueError):
            pass
        return cls(text)  # of a method that tells itself in words of its own


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)  # an object, which is told by its text


def _written(value: Any) -> str:
    return str(value) if isinstance(value, MethodRecord) else repr(value)
