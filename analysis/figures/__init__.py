"""Figures, each from a summary."""
