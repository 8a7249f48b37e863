"""Devices that run a Program. Nothing here knows operators or TFLite."""
