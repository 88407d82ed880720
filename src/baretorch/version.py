"""The version of this package, for those that the package's own file imports."""

__version__ = "0.1.0"
