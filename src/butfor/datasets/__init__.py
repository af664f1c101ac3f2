"""Graphs to explain predictions on: generated ones (the paper's three, and BA-2Motifs) and graphs from files.

`butfor.datasets.registry` lists the named datasets and the file formats, and says how to add more. The public names and
where they live are in ``__init__.pyi``; each is imported at its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
