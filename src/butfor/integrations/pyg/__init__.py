"""Counterfactuals through PyG's own ``Explainer``: one more algorithm beside ``GNNExplainer`` and its kin."""

from butfor.integrations.pyg.explainer import CounterfactualExplainer

__all__ = ["CounterfactualExplainer"]
