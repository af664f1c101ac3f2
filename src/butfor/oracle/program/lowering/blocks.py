"""Where rows of several tables stand in one, such as those of all node types, one type behind the other.

Where they stand depends on how large the tables are, and code has numbers for that: it cuts a table at such a number,
or counts on from there. That it is the right number on any graph cannot be seen in one run. So a row of such a table is
known by its node and by the table that it came from, its *block*, and what code does by such numbers is noted in terms
of blocks (`Trace.placed`): whole blocks are cut out, the numbers of a relation lead to a certain block. Where runs on
graphs of other sizes, the whole graph among them, note the same, the sizes make no difference to any row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from butfor.oracle.program.lowering.counting import distinct
from butfor.oracle.program.lowering.facts import Index
from butfor.oracle.program.steps import Space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from butfor.oracle.program.lowering.counting import Counted
    from butfor.oracle.program.lowering.facts import Facts
    from butfor.oracle.program.trace import Ref

__all__ = [
    "are_rows", "blocks_of", "divided", "in_order", "joined", "note_side_by_side", "notes_choice", "receivers_of",
    "written",
]  # fmt: skip


def blocks_of(space: Space) -> NDArray[np.int64]:
    """The block of each row."""
    return np.zeros(space.size, dtype=np.int64) if space.blocks is None else space.blocks


def joined(spaces: Sequence[Space]) -> NDArray[np.int64]:
    """The blocks of rows one behind the other."""
    blocks, start = [np.empty(0, np.int64)], 0
    for space in spaces:
        own = blocks_of(space)
        blocks.append(np.where(own < 0, -1, own + start))
        start += int(own.max(initial=0)) + 1
    return np.concatenate(blocks)


def divided(space: Space, row: NDArray[np.int64], part: NDArray[np.int64]) -> NDArray[np.int64]:
    """The blocks of parts of rows, each a part of that row: equal parts of rows of one block are one."""
    own = blocks_of(space)
    return np.where(own[row] < 0, -1, part * (int(own.max(initial=0)) + 1) + own[row])


def in_order(blocks: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """The blocks, or the blocks that each line has, in the order in which they stand, whatever their sizes."""
    lines = blocks.reshape(len(blocks), -1)
    first = np.ones(len(lines), dtype=bool)
    first[1:] = (lines[1:] != lines[:-1]).any(axis=1)
    return tuple(tuple(line) for line in lines[first].tolist())


def notes_choice(facts: Facts, space: Space, rows: NDArray[np.int64]) -> bool:
    """Whether these are all rows of some blocks; which ones is noted."""
    if space.blocks is None or space.nodes is None:
        return False
    chosen = np.unique(space.blocks[rows])
    if (chosen < 0).any() or not np.array_equal(rows, np.flatnonzero(np.isin(space.blocks, chosen))):
        return False
    facts.place(tuple(chosen.tolist()))
    return True


def note_side_by_side(facts: Facts, space: Space, choices: NDArray[np.int64]) -> None:
    """Rows of several blocks become one row: note of which ones, unless it is each after the one before."""
    if space.blocks is not None:
        found = in_order(space.blocks[choices])
        if found != (tuple(range(choices.shape[1])),):
            facts.place(found)


def written(
    facts: Facts, space: Space, before: Space | None, new: Space | None, rows: NDArray[np.int64]
) -> Space | None:
    """The space of rows of which some are written over, with its blocks; None where blocks do not say what was done.

    ``before`` is None where a constant is written into, ``new`` where one is written.
    """
    if space.columns is not None or new is None or new.nodes is None or (before is not None and before.nodes is None):
        return None
    blocks = np.full(space.size, -1) if before is None else blocks_of(before).copy()
    over = np.unique(blocks[rows])
    kept = np.delete(blocks, rows)
    if np.isin(over[over >= 0], kept).any():
        return None  # a part of a block is gone
    blocks[rows] = joined([replace(space, blocks=blocks), new])[space.size :]
    facts.place(in_order(blocks))
    return replace(space, blocks=blocks, part_of=_parts(space.size, before, new, rows))


def _parts(size: int, before: Space | None, new: Space, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The rows that rows are parts of."""
    if new.part_of is None or (before is not None and before.part_of is None):
        return None
    parts = np.full(size, -1) if before is None or before.part_of is None else before.part_of.copy()
    parts[rows] = new.part_of
    return parts


def are_rows(facts: Facts, index: Index, space: Space) -> bool:
    """Whether each number of an index is the row of that node in a space, whichever edges there are.

    To which blocks they lead is noted.
    """
    counted = facts.counting.of(distinct(index.counting))
    if counted is None or space.nodes is None:
        return False
    blocks: dict[Counted, int] = {}
    for one in counted:
        nodes = facts.nodes[one.node_type]
        rows = slice(one.first, one.first + len(nodes))
        found = np.unique(blocks_of(space)[rows])
        if not np.array_equal(space.nodes[rows], nodes) or len(found) > 1:
            return False
        blocks[one] = int(found[0]) if len(found) else -1
    if space.blocks is not None:
        facts.place(_leads_to(facts, index, blocks))
    return True


def receivers_of(facts: Facts, ref: Ref, size: int) -> Space:
    """The space of so many rows that an index leads to: a block for each type that it has numbers of.

    Rows that nothing can lead to are no nodes.
    """
    index = facts.fact(ref)
    if not isinstance(index, Index):
        return Space(size)
    counted = facts.counting.of(distinct(index.counting))
    if counted is None:
        return Space(size)
    rows, blocks = np.full(size, -1), np.full(size, -1)
    in_turn = sorted(counted, key=lambda one: (one.first, one.node_type))
    for number, (kind, first) in enumerate(in_turn):
        nodes = facts.nodes[kind][: max(size - first, 0)]
        if (rows[first : first + len(nodes)] >= 0).any():
            facts.beyond.append("rows of different nodes combined")
        rows[first : first + len(nodes)], blocks[first : first + len(nodes)] = nodes, number
    if len(in_turn) == 1 and not in_turn[0].first:
        return Space(size, nodes=rows)
    facts.place(_leads_to(facts, index, {one: number for number, one in enumerate(in_turn)}))
    return Space(size, nodes=rows, blocks=blocks)


def _leads_to(facts: Facts, index: Index, blocks: dict[Counted, int]) -> dict[str, tuple[tuple[str, int], ...]]:
    """To which blocks, of which types, the numbers of each relation lead, by their ends."""
    origin, counting = distinct(index.origin).numpy(), distinct(index.counting).numpy()
    origin = origin if origin.size else np.array(-1)  # no edges: what is counted stands for those that there may be
    both = [one.reshape(-1) for one in np.broadcast_arrays(origin, counting)]
    found: dict[str, set[tuple[str, int]]] = {}
    for end, number in np.unique(np.stack([facts.relations.ends_of(both[0]), both[1]]), axis=1).T.tolist():
        some = facts.counting.of(torch.tensor(number)) or ()
        found.setdefault(facts.relations.name(end), set()).update((one.node_type, blocks[one]) for one in some)
    return {name: tuple(sorted(some)) for name, some in found.items()}
