"""Read files of torch.export.save without running their content.

`archive` reads the zip file, `program` checks its JSON, `reader` puts the parts together, and `shapes` compares sizes.
"""
