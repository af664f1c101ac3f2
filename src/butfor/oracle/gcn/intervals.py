"""Intervals that hold on all graphs of a family, and what they say of the ReLUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from butfor.oracle.gcn.family import ROUNDING, rise, worst
from butfor.oracle.gcn.kernels import kernel, step
from butfor.oracle.gcn.selection import sort_falling, sum_of_largest_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from butfor.oracle.gcn.family import Family, Scratch
    from butfor.oracle.gcn.layout import ReceptiveField
    from butfor.oracle.gcn.stack import Layers

    Floats = NDArray[np.float64]

__all__ = ["OFF", "ON", "UNKNOWN", "Boxes", "dot", "finite", "forward", "least", "map_box"]

# What is known of a ReLU on all graphs of F: that it is off, that it is on, or neither.
OFF, ON, UNKNOWN = 0, 1, 2


class Boxes(NamedTuple):
    """Intervals that hold on all of F; end 0 is the lower one, end 1 the upper one."""

    m: Floats  # (end, layer, node, channel): M
    h: Floats  # (end, node, channel): H of one layer at a time
    state: NDArray[np.int8]  # (layer, node, channel): what is known of the ReLU


@step
def least(scale_low: float, scale_high: float, value: float) -> Any:
    """The least product of a scale, which is not negative, and a value."""
    return scale_low * value if value > 0 else scale_high * value


@step
def dot(low: Floats, high: Floats, other_low: Floats, other_high: Floats, width: int) -> Any:
    """The interval of the dot product of two boxes."""
    least, most = 0.0, 0.0
    for j in range(width):
        a, b = low[j] * other_low[j], low[j] * other_high[j]
        c, d = high[j] * other_low[j], high[j] * other_high[j]
        least += min(min(a, b), min(c, d))
        most += max(max(a, b), max(c, d))
    return least, most


@step
def map_box(low: Floats, high: Floats, matrix: NDArray[Any], rows: int, row: int) -> Any:
    """The interval of one row of a matrix times a box."""
    least, most = 0.0, 0.0
    for j in range(rows):
        w = matrix[row, j]
        if w > 0:
            least += w * low[j]
            most += w * high[j]
        else:
            least += w * high[j]
            most += w * low[j]
    return least, most


@step
def finite(values: Floats) -> bool:
    """Whether all are numbers."""
    finite = True
    for value in values.flat:
        finite &= np.isfinite(value)
    return finite


@step
def _multiply(field: ReceptiveField, layers: Layers, layer: int, nodes: int, boxes: Boxes) -> None:
    """The intervals of M of one layer, from those of H of the layer before."""
    m, h, transposed = boxes.m, boxes.h, layers.matrices[layer].T
    for u in range(nodes):
        for j in range(layers.widths[layer + 1]):
            if layer == 0:
                m[0, 0, u, j] = field.first[u, j]
                m[1, 0, u, j] = field.first[u, j]
            else:
                m[0, layer, u, j], m[1, layer, u, j] = map_box(h[0, u], h[1, u], transposed, layers.widths[layer], j)


@step
def _pass_relu(layer: int, v: int, j: int, boxes: Boxes) -> None:
    """From the interval of Z that of H, in place, and what it says of the ReLU."""
    h, state = boxes.h, boxes.state
    if h[1, v, j] <= 0:
        state[layer, v, j] = OFF
    elif h[0, v, j] < 0:
        state[layer, v, j] = UNKNOWN
    for end in range(2):
        h[end, v, j] = max(h[end, v, j], 0.0)


@step
def _fill_scales(family: Family, v: int, scales: Floats) -> None:
    """The scale of a node by how many entries it has lost, where these weigh the same."""
    for i in range(family.losses[v] + 1):
        degree = family.degree[v] * (1 - ROUNDING) - i * family.unit[v]
        scales[i] = min(max(1 / np.sqrt(max(degree, family.least_degree[v])), family.low[v]), family.high[v])


@step
def _least_z(field: ReceptiveField, family: Family, v: int, j: int, sign: float, m: Floats, scratch: Scratch) -> Any:
    """The least of ``sign`` s(v) A(v) in channel ``j``, where ``m`` is the end of M that makes it least.

    That is the present sum, less the worst that absent entries and risen scales can do, times the scale. How many
    entries are lost decides both, so it is the least over these numbers.
    """
    low, weight, lost = family.low, family.weight, scratch.lost
    own = field.incoming.loop[v] * sign * m[v, j]
    total, num_lost, num_moved = 0.0, 0, 0
    for e in range(field.incoming.rows[v], field.incoming.rows[v + 1]):
        if weight[e] != 0.0:
            u = field.incoming.sender[e]
            value = weight[e] * sign * m[u, j]
            total += low[u] * value
            num_moved = rise(family, u, value, num_moved, scratch)
            if family.loose[e] and value > 0.0:
                lost[num_lost] = low[u] * value
                num_lost += 1
    if family.unit[v] > 0.0:
        total -= sum_of_largest_parts(scratch.moved, scratch.parts, num_moved, scratch.changed)
        sort_falling(lost, scratch.unused, num_lost)
        scale = scratch.scales[0]
        z = scale * (scale * own + total)
        for i in range(1, family.losses[v] + 1):
            if i <= num_lost:
                total -= lost[i - 1]
            scale = scratch.scales[i]
            z = min(z, scale * (scale * own + total))
        return z
    total -= worst(num_lost, num_moved, scratch)
    return least(low[v] * low[v], family.high[v] * family.high[v], own) + least(low[v], family.high[v], total)


@kernel
def forward(field: ReceptiveField, layers: Layers, family: Family, boxes: Boxes, scratch: Scratch) -> None:
    """The intervals of all M, and what is known of the ReLUs."""
    levels, num_layers = field.incoming.levels, len(layers.relu)
    for layer in range(num_layers):
        _multiply(field, layers, layer, levels[num_layers - layer], boxes)
        for v in range(levels[num_layers - 1 - layer]):
            if family.unit[v] > 0.0:
                _fill_scales(family, v, scratch.scales)
            for j in range(layers.widths[layer + 1]):
                for end in range(2):
                    sign = 1.0 - 2 * end  # the upper end is the lower one when all signs are turned
                    z = _least_z(field, family, v, j, sign, boxes.m[end, layer], scratch)
                    boxes.h[end, v, j] = sign * z + layers.biases[layer, j]
                boxes.state[layer, v, j] = ON
                if layers.relu[layer]:
                    _pass_relu(layer, v, j, boxes)
