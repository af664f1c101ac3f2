"""The arrays in which the least margin is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from butfor.oracle.gcn.kernels import step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.layout import ReceptiveField

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Workspace", "allocate"]


class Workspace(NamedTuple):
    """Space to compute in."""

    weight: Floats  # (entry): 0 if it is removed
    degree: Floats  # (node)
    scale: Floats  # (node)
    highest: Floats  # (node): the largest scale while it sends to the target
    top: Floats  # (node): the largest scale at all
    into: Floats  # (node): the weight with which it sends to the target
    entries_into: Ints  # (node): in how many entries
    matters: Ints  # (node): whether the target or one of its senders hears it
    num_edits: Ints  # (node): how many free edits hit it
    loose: Floats  # (node): the weight that they take
    last: Ints  # (sender): how many edits at it count while it sends to the target
    dropper: Floats  # (node): the weight that an edit takes which makes it no sender, or 0
    rise: Floats  # (sender, hits): how far its scale rises
    piece_rows: Ints  # (node): its pieces below
    piece_slope: Floats  # increments of the scale, falling
    piece_count: Floats  # and how many hits each lasts
    node_mark: Ints  # (node)
    edit_mark: Ints  # (edit)
    place: Ints  # (edit): its bundle
    target_place: Ints  # (edit): its bundle at the target
    target_weights: Floats  # the weights of these, the largest first
    hits: Floats  # (kind, edit): hits on all, and on senders; for edits at the target, and others
    bundles: Floats  # (edit at a node, channel)
    weights: Floats  # (edit at a node)
    sorted_weights: Floats
    unused: Floats
    other: Floats
    total: Floats  # (channel)
    own: Floats  # (channel)
    state: NDArray[np.int8]  # (channel): what is known of the ReLU
    rate: Floats  # (pair, entry into a sender)
    lift: Floats  # (entry into a sender): how far the scale of its sender rises at most
    risk: Floats  # (pair)
    risks: Floats  # (edit at a node, pair)
    sums: Floats
    risk_sums: Floats
    degrees: Floats
    following: Ints
    vectors: Floats
    ordered: Floats
    gain: Floats
    tables: Floats  # (sender, kind, pair, size)
    exposed: Floats  # (node): how much its scale counts, for one pair
    apart: NDArray[np.bool_]  # (sender): whether it is bounded apart
    values: Floats
    slopes: Floats  # (kind, ...)
    counts: Floats
    steps: Floats  # (kind, ...)


@step
def allocate(field: ReceptiveField, pairs: int, width: int, edits: int, more: int) -> Workspace:
    """Space for so many pairs of classes, channels and edits, of which up to ``more`` are made."""
    nodes, entries = len(field.incoming.loop), len(field.base)
    largest = 1
    near_largest = 1
    for v in range(nodes):
        size = field.incoming.rows[v + 1] - field.incoming.rows[v]
        largest = max(largest, size)
        if v < field.incoming.levels[1]:
            near_largest = max(near_largest, size)
    deep = min(more, near_largest) + 2
    near = field.incoming.levels[1]
    return Workspace(
        weight=field.base.astype(np.float64),
        degree=np.zeros(nodes),
        scale=np.zeros(nodes),
        highest=np.zeros(nodes),
        top=np.zeros(nodes),
        into=np.zeros(nodes),
        entries_into=np.zeros(nodes, np.int64),
        matters=np.zeros(nodes, np.int64),
        num_edits=np.zeros(nodes, np.int64),
        loose=np.zeros(nodes),
        last=np.zeros(nodes, np.int64),
        dropper=np.zeros(nodes),
        rise=np.zeros((near, deep)),
        piece_rows=np.zeros(nodes + 1, np.int64),
        piece_slope=np.zeros(entries + nodes),
        piece_count=np.zeros(entries + nodes),
        node_mark=np.zeros(nodes, np.int64),
        edit_mark=np.zeros(edits, np.int64),
        place=np.zeros(edits, np.int64),
        target_place=np.zeros(edits, np.int64),
        target_weights=np.zeros(largest),
        hits=np.zeros((5, edits)),
        bundles=np.zeros((near_largest, width)),
        weights=np.zeros(largest + 1),
        sorted_weights=np.zeros(largest + 1),
        unused=np.zeros(max(max(largest + 1, edits), entries + nodes)),
        other=np.zeros(largest + 1),
        total=np.zeros(width),
        own=np.zeros(width),
        state=np.zeros(width, np.int8),
        rate=np.zeros((pairs, field.incoming.rows[near])),
        lift=np.zeros(field.incoming.rows[near]),
        risk=np.zeros(pairs),
        risks=np.zeros((near_largest, pairs)),
        sums=np.zeros((deep, width)),
        risk_sums=np.zeros((deep, pairs)),
        degrees=np.zeros(deep),
        following=np.zeros(deep, np.int64),
        vectors=np.zeros((6, width)),
        ordered=np.zeros((width + 1, near_largest)),
        gain=np.zeros(largest + 1),
        tables=np.zeros((near, 2, pairs, deep)),
        exposed=np.zeros(nodes),
        apart=np.zeros(near, np.bool_),
        values=np.zeros(max(largest, deep) + 2),
        slopes=np.zeros((2, entries + nodes)),
        counts=np.zeros((2, entries + nodes)),
        steps=np.zeros((2, 2 * entries + nodes + 2)),
    )
