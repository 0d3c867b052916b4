"""Ends of emulated devices that a host can plug into: in process, pseudo-terminal, TCP, USB."""
