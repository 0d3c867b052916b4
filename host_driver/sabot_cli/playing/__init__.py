"""``sabot play``: the table is led through its rules, and the device deals.

``desk`` keeps the procedure and its ``record``, ``machine`` follows the device, ``packs`` brings cards and
has them shuffled (``nonces``), ``stacks`` and ``shoes`` play ``rounds`` of the two games. ``reports`` is what
people saw, ``typed`` what no reader saw; ``screen`` tells of it all, ``game`` is the loop around them.
"""
