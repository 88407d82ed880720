"""Check a finished plan with code that shares nothing with the planner."""
