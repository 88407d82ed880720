"""Read files of the user safely, write files atomically, and recognize files that may be overwritten."""
