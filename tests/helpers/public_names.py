"""What a user may import: found by walking through `butfor` and the modules that it names."""

from __future__ import annotations

import ast
import inspect
import sys
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING

import butfor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["docstring", "public_names"]


def public_names() -> dict[str, object]:
    """Every public class, function and constant once, by the shortest of its names."""
    found: dict[str, object] = {}
    known: set[int] = set()
    for module in sorted(_modules(butfor), key=lambda module: module.__name__.count(".")):
        for name in _names(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType) and id(value) not in known:
                known.add(id(value))
                found[f"{module.__name__}.{name}"] = value
    return found


def _modules(module: ModuleType) -> Iterator[ModuleType]:
    yield module
    for name in _names(module):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield from _modules(value)


def _names(module: ModuleType) -> list[str]:
    """What ``from module import *`` brings, without modules that are only there because they were imported."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [name for name, value in vars(module).items() if name[0] != "_" and not isinstance(value, ModuleType)]


def docstring(name: str, value: object) -> str:
    """That of the value itself, not one that it inherits; of a constant, the text below its assignment."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return inspect.cleandoc(value.__doc__ or "")
    (text,) = _below_assignments(name.rpartition(".")[2], value)
    return inspect.cleandoc(text)


def _below_assignments(name: str, value: object) -> Iterator[str]:
    modules = [module for key, module in list(sys.modules.items()) if key.startswith("butfor")]
    for module in modules:
        if vars(module).get(name) is not value:
            continue
        body = ast.parse(inspect.getsource(module)).body
        for node, after in pairwise(body):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(one, ast.Name) and one.id == name for one in targets) and isinstance(after, ast.Expr):
                yield str(ast.literal_eval(after.value))
