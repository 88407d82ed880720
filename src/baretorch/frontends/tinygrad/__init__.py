"""Trace tinygrad models by the calls of Tensor's methods during one run.

`hook` wraps the methods when tinygrad is imported, `trace` records their calls, and `table` lowers them.
"""
