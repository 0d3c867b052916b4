"""An emulated Raspberry Pi Pico that runs the firmware's image, in lock step with the simulated mechanism.

``runner.mjs`` is the Pico with the parts of its board, in Node; ``messages`` is what is said to it, ``pico``
who says it, ``wiring`` joins its pins to the mechanism, ``device`` puts a host at the other end of its cable.
"""
