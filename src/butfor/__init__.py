"""butfor: the fewest edits of a graph that make a graph neural network predict something else.

    >>> import butfor
    >>> model, data = butfor.example()  # or your own PyG model and torch_geometric Data
    >>> print(butfor.explain(model, data, 597))
    Node 597 is predicted 'motif' (0.85). But for this 1 of its 14 edges it would be 'base' (0.54): 596–597.

To ask:
    explain         what would have to change for this prediction to be another one?
    prepare         a model and a graph made ready for many questions: a `Session`
    EditSpace       what may be edited, at what cost (with `Within` and `Features`); `Goal`: what counts as another
                    prediction; `Pair`: a link as a target; `Budget`: what a search may spend
    Listener        is told how a search gets on (`SearchState`), and may end it
    Processes, Ray  where many targets are searched

To read the answer:
    Counterfactual  the verified result: `edits` (`Deletion`, `Addition`, `Change`), `before` and `after`
                    (`Prediction`), `status` (`Status`), `lower_bound`, `verdict`, `plot()`
    load_results    results from a file or folder; `report` writes a page of them
    explore, widget look at predictions and try out edits, on a page or in a notebook

How to search (`butfor.methods`):
    Exact (default), Greedy, Descent, CFGNN (the paper's), PRBCD, GRBCD, RandomPerturbation, KeepEgo, RemoveEgo,
    RemoveSubgraph

Graphs that need not be in memory: `write_graph`, `open_graph`. Errors that a user can cause: `butfor.errors`.
Rooms: `datasets`, `models`, `evaluation`, `integrations` (PyG's Explainer), `runs` (results on disk), `certificate`
(proofs that anyone can check). For methods of one's own: `methods`, `problem`, `testing`; for workers: `executors`.

Public names and where they live are in ``__init__.pyi``: torch and PyG take seconds to import, so each is imported at
its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
