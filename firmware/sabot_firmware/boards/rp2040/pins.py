"""What is connected where, one line a part. All other modules of this board read it from here.

A Pico has 26 pins. Parts with timing use them: edges, encoders, steps. Slow switches, presence sensors,
directions and the lamp are on two 16-bit expanders that share one interrupt. Polarity (HIGH or LOW) is the
level that means 1: covered, closed, pressed, arrived, driven. docs/board.md is generated from this module.
"""

from sabot_firmware import hardware

HIGH = 1
LOW = 0

# Pins of the Pico
UART_TX = 0  # second cable: 115200 baud, 8N1
UART_RX = 1
EXPANDER_INTERRUPT = 2  # in, LOW while an input of either expander has changed
I2C_SDA = 4  # bus 0, 400 kHz: expanders, display, card reader
I2C_SCL = 5
ELEVATOR_STEP = 12  # out, a pulse a step, PWM slice 6
ELEVATOR_UP = 13  # out, HIGH up
PUSHER_STEP = 14  # out, a pulse a step, PWM slice 7
GRIPPER = 15  # out, HIGH closes; it springs open without current
SPI_MISO = 16  # bus 0, 8 MHz: the FRAM
FRAM_SELECT = 17  # out, LOW selects
SPI_SCK = 18
SPI_MOSI = 19
HEIGHT_ADC = 26
ENTRY_COLOUR_ADC = 27
EXIT_COLOUR_ADC = 28

# Rollers: what drives it, and the pin of its encoder, the B input of a PWM slice that counts its pulses.
ROLLERS = (
    # roller, pin that drives it (HIGH), encoder's pin
    (hardware.FEED, 6, 7),
    (hardware.INSERT, 8, 9),
    (hardware.DEAL, 10, 11),
)
ENCODER_UM = 100  # of the roller's surface, a pulse

# Sensors whose edges are stamped by pin interrupts.
EDGES = (
    # sensor, pin, level that means 1
    (hardware.ENTRY, 20, HIGH),
    (hardware.INSERTION, 21, HIGH),
    (hardware.EXIT, 22, HIGH),
    (hardware.SUPPLY_LOW, 3, LOW),
)

# Switches and slow sensors on the expanders; those of chip 0 are read first.
INPUTS = (
    # sensor, chip, bit, level that means 1
    (hardware.GRIPPER, 0, 0, LOW),
    (hardware.ELEVATOR_HOME, 0, 1, LOW),
    (hardware.SHELF, 0, 2, LOW),
    (hardware.PUSHER_HOME, 0, 3, LOW),
    (hardware.PUSHER_END, 0, 4, LOW),
    (hardware.TRAY, 0, 5, HIGH),
    (hardware.CHAMBER, 0, 6, HIGH),
    (hardware.STORE, 0, 7, HIGH),
    (hardware.SHOE, 0, 8, HIGH),
    (hardware.EXIT_TRAY, 0, 9, HIGH),
    (hardware.SHUFFLER_DOOR, 0, 10, LOW),
    (hardware.SHOE_DOOR, 0, 11, LOW),
    (hardware.FEED_STALL, 0, 12, LOW),
    (hardware.INSERT_STALL, 0, 13, LOW),
    (hardware.DEAL_STALL, 0, 14, LOW),
    (hardware.HOT, 0, 15, LOW),
    (hardware.LEFT_BUTTON, 1, 0, LOW),
    (hardware.RIGHT_BUTTON, 1, 1, LOW),
)

# The contact inside the locked logic compartment: chip, bit, level that means closed. It is no sensor of the
# machine: held for five seconds it has the device's keys cleared.
PRESENCE_CONTACT = (1, 2, LOW)


def pulled_up(chip: int) -> int:
    """The bits of an expander whose pull-ups are on: its inputs."""
    word = 0
    for _, each, bit, _ in INPUTS:
        if each == chip:
            word |= 1 << bit
    return word | (1 << PRESENCE_CONTACT[1] if PRESENCE_CONTACT[0] == chip else 0)


# Outputs of expander 1, by bit; HIGH is on. Its upper byte drives the motors.
OUTPUT_CHIP = 1
FEED_BACK_BIT = 8  # the direction of each roller: back
INSERT_BACK_BIT = 9
DEAL_BACK_BIT = 10
PUSHER_FORWARD_BIT = 11
SHELF_DOWN_BIT = 12  # the carriage's motor, down or up; it stops by itself at its ends
SHELF_UP_BIT = 13
LAMP_BIT = 3  # and the two bits above it: the lamp's red, green and blue light

# Addresses on the I2C bus
EXPANDERS = (0x20, 0x21)
DISPLAY = 0x3E
CARD_READER = 0x42

# The height sensor: micrometres a count of the 12-bit converter
HEIGHT_UM_PER_COUNT = 40

# The colour readers: up to these counts they see NOTHING, RED, BLUE, FACE; above the last a cover card
COLOUR_LIMITS = (819, 1638, 2457, 3276)

# The event log: the last sectors of the flash that is kept free of the program
LOG_FLASH_BYTES = 24 * 4096

# The mark that says whether the device ever had a key: the sectors before those
MARK_FLASH_BYTES = 2 * 4096

# The record of the house that the device belongs to: the sectors before those
HOUSE_FLASH_BYTES = 2 * 4096

# The log's ring of evidence: the sectors before those
EVIDENCE_FLASH_BYTES = 24 * 4096
