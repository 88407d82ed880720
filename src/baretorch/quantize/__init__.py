"""Quantize a Graph to int8: choose scales from calibration data and judge the accuracy."""
