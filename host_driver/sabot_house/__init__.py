"""Credentials of people: a house key signs certificates, and table PCs check them.

``office`` is the house's own computer, which has the key. ``trust`` is what a table PC knows of its house.
The device does not check certificates yet (docs/credentials.md).
"""
