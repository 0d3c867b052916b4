"""Emulated devices, and the endpoints that hosts reach them by."""
