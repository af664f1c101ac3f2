"""Pictures of counterfactuals."""
