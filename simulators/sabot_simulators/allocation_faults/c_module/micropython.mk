# A user C module of MicroPython's unix port, and the linker's order to route allocations through it.
SRC_USERMOD_C += $(USERMOD_DIR)/alloc_faults.c
LDFLAGS_USERMOD += -Wl,--wrap=gc_alloc -Wl,--wrap=gc_realloc
