"""The boards the firmware runs on. Nothing outside this folder knows one."""
