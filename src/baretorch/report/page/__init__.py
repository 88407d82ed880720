"""Write HTML pages: the report of a model, with pictures, and the result of a search."""
