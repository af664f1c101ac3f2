# The public names of butfor.datasets: the one list of them, read by type checkers and by `lazy_loader`.

from .conversion import convert_graph as convert_graph
from .description import describe as describe
from .loading import load_graph as load_graph
from .loading import load_graphs as load_graphs
from .motif_graphs import ba_2motifs as ba_2motifs
from .mutagenicity import load_mutagenicity as load_mutagenicity
from .npz import save_graph as save_graph
from .registry import GENERATORS as GENERATORS
from .registry import register_dataset as register_dataset
from .registry import register_loader as register_loader
from .synthetic import ba_shapes as ba_shapes
from .synthetic import tree_cycles as tree_cycles
from .synthetic import tree_grid as tree_grid
