"""The part of a molecule that is drawn: atoms without most hydrogens, bonds, and which bonds are marked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from butfor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["KINDS", "Pair", "Sketch"]

Pair = tuple[int, int]

# How many lines a bond of each kind has; one of unknown kind is drawn as a single bond.
KINDS = {"single": 1, "double": 2, "triple": 3, "aromatic": 2, "": 1}

# Where more atoms of one element than this have no bonds, they are counted below the picture instead of drawn: some
# molecules of Mutagenicity have lost most of their bonds.
LOOSE = 3


@dataclass(frozen=True, eq=False)
class Sketch:
    """The part of a molecule that is drawn. Only atoms that are drawn have numbers here.

    Attributes:
        symbols: the element of each atom.
        names: what each atom is called.
        hydrogens: how many hydrogens are part of its label.
        charges: +1, -1 or 0.
        bonds: the two atoms of each bond, and its kind.
        removed, added, truth: the marked bonds.
        near: the neighbours of each atom.
        loose: how many atoms without bonds are not drawn, by element.
    """

    symbols: list[str]
    names: list[str]
    hydrogens: list[int]
    charges: list[int]
    bonds: dict[Pair, str]
    removed: list[Pair]
    added: list[Pair]
    truth: list[Pair]
    near: list[list[int]]
    loose: dict[str, int]

    @classmethod
    def of(
        cls,
        symbols: Sequence[str],
        bonds: Iterable[tuple[int, int, str]],
        *,
        removed: Iterable[Pair] = (),
        added: Iterable[Pair] = (),
        truth: Iterable[Pair] = (),
        names: Sequence[str] | None = None,
    ) -> Sketch:
        """Choose what is drawn.

        Raises:
            InputError: an atom, a bond or a kind of bond does not exist.
        """
        kinds = _checked_bonds(symbols, bonds)
        marked = {
            "removed": _checked_pairs("removed", removed, kinds, len(symbols)),
            "added": _checked_pairs("added", added, kinds, len(symbols)),
            "truth": _checked_pairs("ground-truth", truth, kinds, len(symbols)),
        }
        marked_atoms = {atom for pairs in marked.values() for pair in pairs for atom in pair}
        near = _neighbours(len(symbols), kinds)
        hidden = Counter[int]()
        drawn = {atom: str(symbol) for atom, symbol in enumerate(symbols)}
        for atom, symbol in enumerate(symbols):
            if symbol == "H" and atom not in marked_atoms and len(near[atom]) == 1 and symbols[near[atom][0]] != "H":
                hidden[near[atom][0]] += 1
                del drawn[atom]
        loose = [atom for atom in drawn if not near[atom] and atom not in marked_atoms]
        many = {symbol: count for symbol, count in Counter(drawn[atom] for atom in loose).items() if count > LOOSE}
        if len(loose) == len(drawn):
            many = {}  # a picture without any atom would say nothing
        for atom in loose:
            if drawn[atom] in many:
                del drawn[atom]
        index = {atom: position for position, atom in enumerate(drawn)}
        inside = {(index[u], index[v]): kind for (u, v), kind in kinds.items() if u in index and v in index}
        charges = _charges(symbols, kinds, near)
        return cls(
            symbols=list(drawn.values()),
            names=[str(atom) if names is None else names[atom] for atom in index],
            hydrogens=[hidden[atom] for atom in index],
            charges=[charges[atom] for atom in index],
            bonds=inside,
            near=_neighbours(len(index), inside),
            loose=many,
            **{name: [(index[u], index[v]) for u, v in pairs] for name, pairs in marked.items()},
        )


def _checked_bonds(symbols: Sequence[str], bonds: Iterable[tuple[int, int, str]]) -> dict[Pair, str]:
    """Each bond once, from the lower atom to the higher, in an order that does not depend on how they were given."""
    if not len(symbols):
        raise InputError("there are no atoms to draw; give the symbol of at least one")
    kinds: dict[Pair, str] = {}
    for u, v, kind in bonds:
        pair = _checked_pair(f"the bond {u}–{v}", u, v, len(symbols))
        if kind not in KINDS:
            raise InputError(f"the bond {u}–{v} is of kind {kind!r}; known are {', '.join(map(repr, KINDS))}")
        if kinds.setdefault(pair, kind) != kind:
            raise InputError(f"the bond {u}–{v} is given twice, as {kinds[pair]!r} and as {kind!r}; give it once")
    return dict(sorted(kinds.items()))


def _checked_pair(what: str, u: int, v: int, num_atoms: int) -> Pair:
    for atom in (u, v):
        if not 0 <= atom < num_atoms:
            raise InputError(f"{what}: atom {atom} is not in this molecule (0 to {num_atoms - 1})")
    if u == v:
        raise InputError(f"{what} joins an atom to itself")
    return (int(min(u, v)), int(max(u, v)))


def _checked_pairs(what: str, pairs: Iterable[Pair], kinds: dict[Pair, str], num_atoms: int) -> list[Pair]:
    found = set()
    for u, v in pairs:
        pair = _checked_pair(f"the {what} bond {u}–{v}", u, v, num_atoms)
        if (pair in kinds) == (what == "added"):
            problem = "is there already; add one that is not" if what == "added" else "is not among the bonds"
            raise InputError(f"the {what} bond {u}–{v} {problem}")
        found.add(pair)
    return sorted(found)


def _neighbours(num_atoms: int, pairs: Iterable[Pair]) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(num_atoms)]
    for u, v in pairs:
        near[u].append(v)
        near[v].append(u)
    return [sorted(others) for others in near]


def _charges(symbols: Sequence[str], kinds: dict[Pair, str], near: Sequence[Sequence[int]]) -> Counter[int]:
    """Charges that follow from the bonds: data sets give nitro groups none, but nitrogen with four bonds has one."""
    orders, unsure, charges = Counter[int](), set[int](), Counter[int]()
    for pair, kind in kinds.items():
        for atom in pair:
            orders[atom] += KINDS[kind]
            if kind in ("", "aromatic"):
                unsure.add(atom)
    for atom, symbol in enumerate(symbols):
        if symbol == "N" and orders[atom] == 4 and atom not in unsure:
            charges[atom] = 1
            partners = [other for other in near[atom] if symbols[other] == "O" and orders[other] == 1]
            for other in partners[:1]:
                charges[other] = -1
    return charges
