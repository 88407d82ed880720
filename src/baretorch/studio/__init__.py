"""Serve a local web page on which people draw and move sliders, and a chip, emulated or real, answers."""
