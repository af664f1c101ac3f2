"""The hyper-parameters of the methods as flags, made from the methods' own dataclasses."""

from __future__ import annotations

import types
from dataclasses import MISSING, dataclass, fields, make_dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import Group, Parameter
from docstring_parser import parse

from butfor.errors import InputError
from butfor.methods import CFGNN, METHODS, Method
from butfor.methods.base import field_types

__all__ = ["FLAGS", "make_method"]

# The types whose values can be written on a command line.
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
    method: Method = replace(base, **{flag: _value(flag, name, value) for flag, value in given.items()})
    return method


def _value(flag: str, method: str, value: object) -> object:
    """The value of a hyper-parameter; one that is a method itself is given by its name."""
    if value == "none":
        return None
    (kind,) = (use.kind for use in _USES[flag] if use.method == method)
    return METHODS[str(value)]() if Method in _parts(kind) else value


def _uses() -> dict[str, list[_Use]]:
    """The methods that use each flag, by its name."""
    found: dict[str, list[_Use]] = {}
    for name, method in METHODS.items():
        types_of = field_types(method)
        described = {item.arg_name: item.description or "" for item in parse(method.__doc__ or "").params}
        for item in fields(method):  # type: ignore[arg-type]  # every method is a dataclass; its base says nothing
            kind = types_of.get(item.name)
            if item.default is not MISSING and kind is not None and all(map(_is_plain, _parts(kind))):
                text = " ".join(described.get(item.name, "").replace("``", "").replace("None", "none").split())
                found.setdefault(item.name, []).append(_Use(name, kind, item.default, text))
    return found


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _is_plain(part: Any) -> bool:
    """Whether values of this type can be written on a command line; an explainer object, for one, cannot."""
    return part in (*_PLAIN, types.NoneType, Method) or get_origin(part) is Literal


def _annotation(uses: list[_Use]) -> Any:
    """The type to read a flag with. None stands for a flag that was not given, so the user writes None as "none"."""
    kinds: list[Any] = []
    words: list[str] = []
    for part in dict.fromkeys(part for use in uses for part in _parts(use.kind)):
        if part in _PLAIN:
            kinds.append(part)
        else:
            words += {types.NoneType: ("none",), Method: tuple(METHODS)}.get(part) or get_args(part)
    if words:
        kinds.append(Literal[tuple(dict.fromkeys(words))])
    read: Any = Union[tuple(kinds)]  # noqa: UP007 (known at run time only)
    groups = tuple(_GROUPS[use.method] for use in uses)
    # Not `read | None`, for which cyclopts would take --lr none as not given.
    return Annotated[read, Parameter(help=_help(uses), group=groups, show_default=False)]


def _help(uses: list[_Use]) -> str:
    if len(uses) == 1:
        return f"{uses[0].help} [default: {_shown(uses[0].default)}]"
    return " ".join(f"For {use.method}: {use.help.rstrip('.')} [default: {_shown(use.default)}]." for use in uses)


def _shown(default: object) -> str:
    if isinstance(default, Method):
        return next(name for name, kind in METHODS.items() if isinstance(default, kind))
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
        namespace={"__module__": __name__},  # otherwise cyclopts takes it for a builtin, which has no fields
    ),
    Parameter(name="*"),
]
