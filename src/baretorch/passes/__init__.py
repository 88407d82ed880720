"""Rewrites Graph -> Graph, one file each. The list and its order are in pipeline.py."""
