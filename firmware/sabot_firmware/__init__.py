"""The device: everything that runs on a shoe's controller board. MicroPython."""
