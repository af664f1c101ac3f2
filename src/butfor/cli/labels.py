"""Methods in few words: the name the command line knows, and what is unusual about the settings."""

from __future__ import annotations

import ast
from dataclasses import fields
from typing import Any

from butfor.methods import CFGNN, METHODS

__all__ = ["method_label"]


def method_label(method: str) -> str:
    """A short name for a method given as its ``repr``, such as "cf-gnn, published code, momentum=0.9"."""
    class_name, _, _ = method.partition("(")
    for name, cls in METHODS.items():
        if cls.__name__ == class_name and (settings := _settings(method)) is not None:
            label, usual = name, cls()
            if isinstance(usual, CFGNN) and not settings.get("distance_gradient", True):
                label, usual = f"{name}, published code", CFGNN.published()
            return ", ".join([label, *_unusual(usual, settings)])
    return method


def _settings(method: str) -> dict[str, Any] | None:
    """The arguments in a ``repr``; None where one is more than a plain value."""
    try:
        call = ast.parse(method, mode="eval").body
        return {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, AttributeError):
        return None


def _unusual(usual: Any, settings: dict[str, Any]) -> list[str]:
    defaults = {item.name: getattr(usual, item.name) for item in fields(usual)}
    return [f"{name}={value}" for name, value in settings.items() if defaults.get(name) != value]
