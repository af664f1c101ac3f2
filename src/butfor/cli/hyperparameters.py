"""The hyper-parameters of the methods as flags, made from the methods' own dataclasses."""

from __future__ import annotations

import sys
import types
from dataclasses import MISSING, Field, dataclass, fields, make_dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import Group, Parameter
from docstring_parser import parse

from butfor.errors import InputError
from butfor.methods import CFGNN, METHODS, Method

__all__ = ["FLAGS", "make_method"]

# What can be written on a command line.
_PLAIN = (int, float, str, bool)


@dataclass(frozen=True)
class _Use:
    """One method's use of a flag."""

    method: str
    kind: Any
    default: object
    help: str


def make_method(name: str, flags: object, published: bool = False) -> Method:
    """The method of this name with the hyper-parameters that were given.

    Args:
        name: one of `METHODS`.
        flags: an instance of `FLAGS`, or None where no flag was given.
        published: start from the choices of the published code.

    Raises:
        InputError: a flag belongs to other methods, or its value makes no sense.
    """
    given = {} if flags is None else {k: v for k, v in vars(flags).items() if v is not None}
    for flag in given:
        users = [use.method for use in _USES[flag]]
        if name not in users:
            raise InputError(f"{_flag(flag)} belongs to {' and '.join(users)}, not to {name}")
    if published and name != "cf-gnn":
        raise InputError(f"--published-choices belongs to cf-gnn, not to {name}")
    base: Any = CFGNN.published() if published else METHODS[name]()
    method: Method = replace(base, **{k: None if v == "none" else v for k, v in given.items()})
    return method


def _uses() -> dict[str, list[_Use]]:
    found: dict[str, list[_Use]] = {}
    for name, method in METHODS.items():
        described = {item.arg_name: item.description or "" for item in parse(method.__doc__ or "").params}
        for item in fields(method):  # type: ignore[arg-type]  # every method is a dataclass; its base says nothing
            kind = _kind(method, item)
            if kind is not None:
                text = " ".join(described.get(item.name, "").replace("``", "").replace("None", "none").split())
                found.setdefault(item.name, []).append(_Use(name, kind, item.default, text))
    return found


def _kind(method: type[Method], item: Field[Any]) -> Any:
    """The type of a field; None where no command line could write a value of it (an explainer object)."""
    if item.default is MISSING:
        return None
    try:
        kind = eval(item.type, vars(sys.modules[method.__module__])) if isinstance(item.type, str) else item.type
    except NameError:  # a type imported for type checkers only
        return None
    return kind if all(_is_plain(part) for part in _parts(kind)) else None


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _is_plain(part: Any) -> bool:
    return part in (*_PLAIN, types.NoneType) or get_origin(part) is Literal


def _annotation(uses: list[_Use]) -> Any:
    """The type to read a flag with. Not given is None, so a None that can be given is written "none"."""
    parts = dict.fromkeys(part for use in uses for part in _parts(use.kind))
    read: Any = None
    for part in parts:
        part = Literal["none"] if part is types.NoneType else part
        read = part if read is None else Union[read, part]  # noqa: UP007 (parts are known at run time only)
    groups = tuple(_GROUPS[use.method] for use in uses)
    return Annotated[read | None, Parameter(help=_help(uses), group=groups, show_default=False)]


def _help(uses: list[_Use]) -> str:
    if len(uses) == 1:
        return f"{uses[0].help} [default: {_shown(uses[0].default)}]"
    return " ".join(f"For {use.method}: {use.help.rstrip('.')} [default: {_shown(use.default)}]." for use in uses)


def _shown(default: object) -> str:
    return str(default).lower() if default is None or isinstance(default, bool) else str(default)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


_USES = _uses()
_GROUPS = {
    name: Group(f"Hyper-parameters of --method {name}", sort_key=20 + number) for number, name in enumerate(METHODS)
}

# All flags of all methods, as one dataclass that cyclopts takes apart again.
FLAGS: Any = Annotated[
    make_dataclass(
        "Flags",
        [(name, _annotation(uses), None) for name, uses in _USES.items()],
        frozen=True,
        namespace={"__module__": __name__},  # else it would pass for a builtin, which has no fields
    ),
    Parameter(name="*"),
]
