"""Builds the images that are flashed onto a board; every build gives the same bytes."""
