"""Methods in few words: the name the command line knows, and what is unusual about the settings."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from butfor.methods import CFGNN, METHODS, Method

if TYPE_CHECKING:
    from butfor.problem.method_record import MethodRecord

__all__ = ["method_label"]


def method_label(method: MethodRecord) -> str:
    """A short name for a method, such as "cf-gnn, published code, momentum=0.9"."""
    for name, cls in METHODS.items():
        if cls.__name__ == method.name and method.settings.keys() <= {item.name for item in fields(cls)}:  # type: ignore[arg-type]
            label, usual = name, cls()
            if isinstance(usual, CFGNN) and not method.settings.get("distance_gradient", True):
                label, usual = f"{name}, published code", CFGNN.published()
            return ", ".join([label, *_unusual(usual, method.settings)])
    return str(method)


def _unusual(usual: Method, settings: dict[str, Any]) -> list[str]:
    defaults = usual.record().settings
    return [f"{name}={value}" for name, value in settings.items() if defaults.get(name) != value]
