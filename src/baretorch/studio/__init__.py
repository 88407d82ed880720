"""Serve a local web page on which users draw and move sliders, and an emulated or real chip runs the model."""
