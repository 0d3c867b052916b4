"""The messages of a failing board, besides those of ``piped_board``."""

# To the board
ARM = 0x50  # the n-th allocation of what follows on the cables fails
DISARM = 0x51  # no more; COUNTED comes before DONE
FORK = 0x52  # the child does what follows until LEAVE; the parent says JOINED when the child has ended
LEAVE = 0x53  # the child ends
# From the board
BEGUN = 0x60  # the controller is given a command
COMPLETED = 0x61  # it has executed the command
COUNTED = 0x62  # allocations that were counted, and how many found no memory
RESTARTED = 0x63  # an exception ended the device's life; what follows is the start of the next one
JOINED = 0x64

FORMATS = {ARM: "<IB", COUNTED: "<II", JOINED: "<B"}
