"""What is frozen into MicroPython for a board in development: the places for an application, not itself."""

freeze("$(PORT_DIR)/modules", "rp2.py")
freeze(".", ("_boot.py", "sabot_slots.py"))
