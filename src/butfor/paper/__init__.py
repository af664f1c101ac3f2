"""What the paper ran, and the numbers it published."""

from butfor.paper.published import PAPER, PaperDataset, PaperRow, Statistics, dataset_of, paper_row

__all__ = ["PAPER", "PaperDataset", "PaperRow", "Statistics", "dataset_of", "paper_row"]
