"""Operators: what is supported and why not, and how each is lowered to dispatches."""
