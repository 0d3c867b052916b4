"""No memory at every allocation of the firmware that a message can reach, one after the other."""
