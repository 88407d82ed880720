"""The Graph: its types, grammar, text form, input and output conversion, and equivalence checks."""
