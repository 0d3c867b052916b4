"""Credentials of people: a house key signs certificates, and table PCs check them.

``office`` is the house's own computer, which has the key. ``trust`` is what a table PC knows of its house.
``on_device`` is what devices are shown (docs/credentials.md).
"""
