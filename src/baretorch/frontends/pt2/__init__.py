"""Files of torch.export.save, read without running what is in them."""
