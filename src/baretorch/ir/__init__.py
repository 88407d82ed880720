"""The Graph: its types, grammar, text form, and input and output conversion."""
