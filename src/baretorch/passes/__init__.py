"""Rewrite a Graph, one file per pass, in the order that order.py lists; and check that its results stay the same."""
