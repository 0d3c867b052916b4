"""``sabot play``: the table is led through its rules, and the device deals.

``desk`` keeps the procedure and its ``record``, ``machine`` follows the device, ``packs`` brings cards and has
them shuffled (``nonces``), ``stacks`` and ``shoes`` play ``rounds`` of the two games, ``reports`` are what people
saw, ``typed`` are cards that no reader saw, ``screen`` tells of it all, ``game`` is the loop around them.
"""
