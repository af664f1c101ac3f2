"""Graphs to explain predictions on: the paper's three and BA-2Motifs, by seed, and others from disk.

`butfor.datasets.registry` says which datasets have a name and which files can be read, and how to add more. The public
names and where they live are in ``__init__.pyi``; each is imported at its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
