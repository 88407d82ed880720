"""Random modules through the whole compiler, each answer compared with the one before it on the ladder."""
