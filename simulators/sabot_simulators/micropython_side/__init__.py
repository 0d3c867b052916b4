"""The side of an emulated device that runs on MicroPython: the firmware on a board made of pipes."""
