"""Evidence of the table PC: chained rows, signed checkpoints, and the verifier that reads them.

This package imports no other package of ours. Journal and record use it to write their chains.
"""
