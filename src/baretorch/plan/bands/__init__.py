"""Run a part of a network band by band of rows, so that its largest tensors never exist as a whole."""
