"""The first product is the same to the last bit, whichever rows were asked for before."""

from __future__ import annotations

import numpy as np
import torch

from butfor.oracle.gcn.stack import FirstProduct


def test_rows_do_not_depend_on_what_was_asked_before() -> None:
    torch.manual_seed(0)
    x, linear = torch.randn(203, 37), torch.nn.Linear(37, 20, bias=False)
    at_once = FirstProduct(linear, x).rows(np.arange(203))
    single = FirstProduct(linear, x)
    for node in np.random.default_rng(0).permutation(203):
        assert np.array_equal(single.rows(np.array([node]))[0], at_once[node])
    torch.testing.assert_close(torch.from_numpy(at_once), linear(x).detach())
