// The production image of the Raspberry Pi Pico: what runs is frozen into it, and nothing else can be run.
#define MICROPY_HW_BOARD_NAME "Sabot on Raspberry Pi Pico"
#define MICROPY_HW_USB_MANUFACTURER_STRING "Sabot"
#define MICROPY_HW_USB_PRODUCT_FS_STRING "Sabot shoe controller"

// Flash kept free of the program; the event log is its last part.
#define MICROPY_HW_FLASH_STORAGE_BYTES (512 * 1024)

// No compiler, so no REPL, no exec and no source file: bytes of the cable are frames of the wire, never a program.
#define MICROPY_ENABLE_COMPILER (0)
// Opening the port at 1200 baud must not put the board into its boot loader: its button does.
#define MICROPY_HW_USB_CDC_1200BPS_TOUCH (0)
// A host that does not read must not hold up a motor: what finds no room is written later.
#define MICROPY_HW_USB_CDC_TX_TIMEOUT (0)
// One thread is all there is: no locks around what only threads would need them for.
#define MICROPY_PY_THREAD (0)
