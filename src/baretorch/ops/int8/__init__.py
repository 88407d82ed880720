"""Integer operators, the rules that turn float operators into them, and their arithmetic."""
