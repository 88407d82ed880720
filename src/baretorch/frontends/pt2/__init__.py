"""Read files of torch.export.save without running their content."""
