"""What is frozen into MicroPython for boards in development: what mounts its file system, nothing of ours."""

freeze("$(PORT_DIR)/modules", ("_boot.py", "rp2.py"))
