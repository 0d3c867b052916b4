"""``sabot play``: the table is led through its rules, and the device deals.

``desk`` keeps the procedure and its ``record``, ``machine`` follows the device, ``packs`` brings cards and
has them shuffled (``nonces``). ``stacks`` plays ``rounds`` of the three-card game; ``shoes`` makes the shoes
of mini baccarat ready and ``coups`` plays it. ``reports`` is what people saw, ``typed`` what no reader saw.
``screen`` tells of it all, ``game`` is the loop around them.
"""
