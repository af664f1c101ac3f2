"""The verified result."""
