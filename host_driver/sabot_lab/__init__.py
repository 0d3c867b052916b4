"""The package for a test laboratory: what was built, what it was tested for, and what remains.

One archive, the same bytes for the same inputs, signed by the maker. It imports `sabot_evidence` (keys),
`sabot_flash` (components of images) and no other package of ours.
"""
