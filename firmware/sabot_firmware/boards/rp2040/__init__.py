"""The Raspberry Pi Pico (RP2040) as the machine's controller. ``pins`` says what is connected where."""
