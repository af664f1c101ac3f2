"""The paper's evaluation: the numbers it published, and everything that reproduces them."""

from butfor.paper.published_numbers import PAPER, PaperDataset, PaperRow, Statistics, dataset_of, paper_row

__all__ = ["PAPER", "PaperDataset", "PaperRow", "Statistics", "dataset_of", "paper_row"]
