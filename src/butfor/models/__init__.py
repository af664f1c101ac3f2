"""The paper's GCN: how it is built, trained, kept on disk, and read as published. And a classifier of graphs."""

from .checkpoint import load_checkpoint, save_checkpoint
from .gcn import PaperGCN
from .graph_classifier import GraphClassifier
from .graph_training import GraphTraining, trained_graph_classifier
from .published import load_published
from .training import TrainingResult, train, trained_gcn
from .weights import fingerprint, load_weights

__all__ = [
    "GraphClassifier",
    "GraphTraining",
    "PaperGCN",
    "TrainingResult",
    "fingerprint",
    "load_checkpoint",
    "load_published",
    "load_weights",
    "save_checkpoint",
    "train",
    "trained_gcn",
    "trained_graph_classifier",
]
