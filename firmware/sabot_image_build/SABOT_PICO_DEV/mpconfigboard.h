// MicroPython with its prompt for a board in development; the application comes by 'sabot flash PORT'.
#define MICROPY_HW_BOARD_NAME "Raspberry Pi Pico"

// Files, two places for an application, and the event log: development/sabot_slots.py says where.
#define MICROPY_HW_FLASH_STORAGE_BYTES (1408 * 1024)

// Byte code that runs where it lies in flash: the application does not fit into RAM. The port has this file system
// only with a partition of its own, which stays empty.
#define MICROPY_HW_ROMFS_BYTES (4096)
