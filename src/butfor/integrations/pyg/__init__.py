"""Counterfactuals through PyG's own ``Explainer``: an algorithm to use like ``GNNExplainer`` and the others."""

from butfor.integrations.pyg.explainer import CounterfactualExplainer

__all__ = ["CounterfactualExplainer"]
