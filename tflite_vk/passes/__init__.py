"""Rewrites of the graph, one file each; `manager.py` runs them in order and verifies between."""
