"""Short labels of methods: the name on the command line, and the settings that differ from the defaults."""

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
            label, default = name, cls()
            if isinstance(default, CFGNN) and not method.settings.get("distance_gradient", True):
                label, default = f"{name}, published code", CFGNN.published()
            return ", ".join([label, *_changed_settings(default, method.settings)])
    return str(method)


def _changed_settings(default: Method, settings: dict[str, Any]) -> list[str]:
    defaults = default.record().settings
    return [f"{name}={value}" for name, value in settings.items() if defaults.get(name) != value]
