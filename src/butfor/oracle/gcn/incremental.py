"""Compiled evaluation of "these edits and one more" for a stack of GCN layers, by changed rows only.

The activations after a prefix of edits are computed once. Each further edit changes few rows per layer: a
deleted or added edge changes the degree, and so the scale s, of the node that receives it, and with it every
message that node sends; a changed feature moves that node's row of X·W. Layer by layer, only rows that receive
something changed are computed anew, and only those that the target can see.

Notation as in `gcn/kernels.py`; A_l(v) = ω(v) s(v) M_l(v) + Σ w s(u) M_l(u), so that Z_l(v) = s(v) A_l(v) + b_l.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from butfor.oracle.gcn.kernels import head, jit

__all__ = ["extend"]


@jit
def _prepare(frame: Any, stack: Any, first: Any, weight: Any, scale: Any, a: Any, h: Any, m: Any) -> None:
    """All activations under the entries' present weights."""
    levels, rows, sender, _, loop = frame[:5]
    widths, relu, matrices, biases = stack[:4]
    layers = len(relu)
    for v in range(levels[layers]):
        degree = loop[v]
        for e in range(rows[v], rows[v + 1]):
            degree += weight[e]
        scale[v] = 1 / np.sqrt(degree) if degree > 0 else 0.0
    for layer in range(layers):
        width = widths[layer + 1]
        for u in range(levels[layers - layer]):
            for j in range(width):
                m[layer, u, j] = first[u, j] if layer == 0 else 0.0
            if layer > 0:
                for i in range(widths[layer]):
                    value = h[layer - 1, u, i]
                    if value != 0.0:
                        for j in range(width):
                            m[layer, u, j] += value * matrices[layer, i, j]
        for v in range(levels[layers - 1 - layer]):
            total = a[layer, v]
            own = loop[v] * scale[v]
            for j in range(width):
                total[j] = own * m[layer, v, j]
            for e in range(rows[v], rows[v + 1]):
                if weight[e] != 0.0:
                    u = sender[e]
                    factor = weight[e] * scale[u]
                    for j in range(width):
                        total[j] += factor * m[layer, u, j]
            for j in range(width):
                z = scale[v] * total[j] + biases[layer, j]
                h[layer, v, j] = max(z, 0.0) if relu[layer] else z


@jit
def _touch(x: Any, stamp: Any, tick: Any, rows_new: Any, base: Any, width: Any, touched: Any, count: Any) -> Any:
    """Begin a new version of row ``x`` unless there is one; returns how many there are."""
    if stamp[x] != tick:
        stamp[x] = tick
        for j in range(width):
            rows_new[x, j] = base[x, j]
        touched[count] = x
        count += 1
    return count


@jit
def extend(frame: Any, stack: Any, prefixes: Any, candidates: Any, pointers: Any, out: Any) -> None:
    """Scores after prefix ``i`` and candidate ``j``, for j from pointers[i] to pointers[i + 1], into ``out[j]``.

    A candidate of -1 is none at all: the prefix alone.
    """
    levels, rows, sender, receiver, loop, intact, base, out_rows, out_entries, edit_rows, edit_entries = frame[:11]
    after, change_rows, change_node, change_step = frame[11:]
    widths, relu, matrices, biases = stack[:4]
    layers, wide, nodes = len(relu), widths.max(), levels[-1]
    weight, first = base.copy(), intact.copy()
    scale, scale_new = np.zeros(nodes, base.dtype), np.zeros(nodes, base.dtype)
    a = np.zeros((layers, nodes, wide), base.dtype)
    h, m = np.zeros_like(a), np.zeros_like(a)
    a_new, m_new = np.zeros((nodes, wide), base.dtype), np.zeros((nodes, wide), base.dtype)
    delta, fresh = np.zeros(wide, base.dtype), np.zeros(wide, base.dtype)
    target = np.zeros((layers, 1, wide), base.dtype)
    # A row, entry or node is "new" where its stamp is the present tick.
    row_stamp, m_stamp = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    scale_stamp, edited = np.zeros(nodes, np.int64), np.zeros(len(base), np.int64)
    touched, changed, rescaled = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    tick = 0
    for i in range(len(prefixes)):
        prefix = prefixes[i]
        for edit in prefix:
            if edit >= 0:
                for k in range(edit_rows[edit], edit_rows[edit + 1]):
                    weight[edit_entries[k]] = after[edit_entries[k]]
                for k in range(change_rows[edit], change_rows[edit + 1]):
                    for c in range(widths[1]):
                        first[change_node[k], c] += change_step[k, c]
        _prepare(frame, stack, first, weight, scale, a, h, m)
        for j in range(pointers[i], pointers[i + 1]):
            edit = candidates[j]
            if edit < 0:
                head(stack, h, out[j])
                continue
            tick += 1
            mark = tick
            num_rescaled = 0
            for k in range(edit_rows[edit], edit_rows[edit + 1]):
                e = edit_entries[k]
                if weight[e] != after[e]:
                    edited[e] = mark
                    v = receiver[e]
                    if scale_stamp[v] != mark:
                        scale_stamp[v] = mark
                        rescaled[num_rescaled] = v
                        num_rescaled += 1
            for k in range(num_rescaled):
                v = rescaled[k]
                degree = loop[v]
                for e in range(rows[v], rows[v + 1]):
                    degree += after[e] if edited[e] == mark else weight[e]
                scale_new[v] = 1 / np.sqrt(degree) if degree > 0 else 0.0
            num_changed = 0  # nodes whose m_new of the present layer differs from m
            for k in range(change_rows[edit], change_rows[edit + 1]):
                x = change_node[k]
                if m_stamp[x] != tick:
                    m_stamp[x] = tick
                    for c in range(widths[1]):
                        m_new[x, c] = m[0, x, c]
                    changed[num_changed] = x
                    num_changed += 1
                for c in range(widths[1]):
                    m_new[x, c] += change_step[k, c]
            for layer in range(layers):
                width, reach = widths[layer + 1], levels[layers - 1 - layer]
                m_tick = tick  # the tick under which m_new of this layer was written
                tick += 1
                count = 0
                # What changed senders now send, to all who still receive it.
                for k in range(num_changed + num_rescaled):
                    if k < num_changed:
                        u = changed[k]
                    else:
                        u = rescaled[k - num_changed]
                        if m_stamp[u] == m_tick:
                            continue
                    if u >= levels[layers - layer]:
                        continue
                    s_now = scale_new[u] if scale_stamp[u] == mark else scale[u]
                    if m_stamp[u] == m_tick:
                        for c in range(width):
                            delta[c] = s_now * m_new[u, c] - scale[u] * m[layer, u, c]
                    else:
                        for c in range(width):
                            delta[c] = (s_now - scale[u]) * m[layer, u, c]
                    if u < reach:
                        count = _touch(u, row_stamp, tick, a_new, a[layer], width, touched, count)
                        for c in range(width):
                            a_new[u, c] += loop[u] * delta[c]
                    for o in range(out_rows[u], out_rows[u + 1]):
                        e = out_entries[o]
                        x = receiver[e]
                        if x >= reach:
                            break
                        now = after[e] if edited[e] == mark else weight[e]
                        if now != 0.0:
                            count = _touch(x, row_stamp, tick, a_new, a[layer], width, touched, count)
                            for c in range(width):
                                a_new[x, c] += now * delta[c]
                # What is not received any more, or from now on, as it was sent before.
                for k in range(edit_rows[edit], edit_rows[edit + 1]):
                    e = edit_entries[k]
                    x, u = receiver[e], sender[e]
                    if edited[e] == mark and x < reach:
                        count = _touch(x, row_stamp, tick, a_new, a[layer], width, touched, count)
                        factor = (after[e] - weight[e]) * scale[u]
                        for c in range(width):
                            a_new[x, c] += factor * m[layer, u, c]
                if row_stamp[0] != tick:
                    for c in range(width):
                        target[layer, 0, c] = h[layer, 0, c]
                num_changed = 0
                for k in range(count):
                    x = touched[k]
                    s_now = scale_new[x] if scale_stamp[x] == mark else scale[x]
                    differs = False
                    for c in range(width):
                        z = s_now * a_new[x, c] + biases[layer, c]
                        fresh[c] = max(z, 0.0) if relu[layer] else z
                        differs |= fresh[c] != h[layer, x, c]
                    if x == 0:
                        for c in range(width):
                            target[layer, 0, c] = fresh[c]
                    if differs and layer + 1 < layers:
                        row = m_new[x]
                        for c in range(widths[layer + 2]):
                            row[c] = m[layer + 1, x, c]
                        for r in range(width):
                            step = fresh[r] - h[layer, x, r]
                            if step != 0.0:
                                for c in range(widths[layer + 2]):
                                    row[c] += step * matrices[layer + 1, r, c]
                        m_stamp[x] = tick
                        changed[num_changed] = x
                        num_changed += 1
            head(stack, target, out[j])
        for edit in prefix:
            if edit >= 0:
                for k in range(edit_rows[edit], edit_rows[edit + 1]):
                    weight[edit_entries[k]] = base[edit_entries[k]]
                for k in range(change_rows[edit], change_rows[edit + 1]):
                    for c in range(widths[1]):
                        first[change_node[k], c] = intact[change_node[k], c]
