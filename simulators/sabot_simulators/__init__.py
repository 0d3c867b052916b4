"""Emulated devices and the ends they are reached by."""
