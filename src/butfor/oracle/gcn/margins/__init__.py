"""The least margin of two-layer stacks after at most so many deletions."""
