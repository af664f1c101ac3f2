"""The paper's GCN and a classifier of whole graphs: how they are built, trained, saved and loaded."""

from butfor.graph.fingerprint import model_fingerprint as fingerprint
from butfor.models.checkpoint import load_checkpoint, save_checkpoint
from butfor.models.example_model import example
from butfor.models.gcn import PaperGCN
from butfor.models.graph_classifier import GraphClassifier
from butfor.models.graph_training import GraphTraining, trained_graph_classifier
from butfor.models.published import load_published
from butfor.models.training import TrainingResult, train, trained_gcn
from butfor.models.weights import load_weights

__all__ = [
    "GraphClassifier",
    "GraphTraining",
    "PaperGCN",
    "TrainingResult",
    "example",
    "fingerprint",
    "load_checkpoint",
    "load_published",
    "load_weights",
    "save_checkpoint",
    "train",
    "trained_gcn",
    "trained_graph_classifier",
]
