"""Constants of the reference machine: micrometres, microseconds and their tolerances.

The firmware calculates with these numbers. A real machine differs from them within the tolerances.
"""

# Cards
CARD_LENGTH_UM = 88900  # along the path, short edge leading
CARD_THICKNESS_UM = 300  # mean of a deck within 2 %, of a card a few micrometres

# Rollers: one micrometre a microsecond
ROLLER_UM_PER_MS = 1000
ROLLER_TOLERANCE_PERCENT = 5
GAP_UM = 15000  # between two cards that follow each other
PITCH_UM = CARD_LENGTH_UM + GAP_UM

# The way from the tray into the chamber, as positions of a card's leading edge
ENTRY_UM = 30000
INSERTION_UM = 80000  # a card waits here until its slot is open
INSERT_NIP_UM = 84000  # the insertion roller takes it from here on
INSERT_TRAVEL_UM = 110000
INSERTED_UM = INSERTION_UM + INSERT_TRAVEL_UM

# The way from the shoe into the exit tray
EXIT_UM = 40000
DEALT_UM = 135000

# Elevator, gripper, height
ELEVATOR_STEP_UM = 50
ELEVATOR_ACCELERATION_UM_S2 = 4000000
ELEVATOR_SPEED_UM_S = 250000
ELEVATOR_TRAVEL_DECK_UM = 25000
ELEVATOR_TRAVEL_BATCH_UM = 140000
BLADE_UM = 22000  # the gripper's blades above the lowest platform (deck setting)
BLADE_BATCH_UM = 134000
OPENING_UM = 6000  # how far the lower packet is lowered to let a card in
GRIP_US = 15000
HEIGHT_US = 2000
HEIGHT_STEP_UM = 50

# Slow movers
SHELF_US = 800000
PUSHER_US = 600000

# Capacity of a zone
DECK_CARDS = 52
DECK_CAPACITY = 53
BATCH_CAPACITY = 418


def travel_us(distance_um: int) -> int:
    """The time that the elevator takes for a distance: it accelerates, may cruise, and brakes."""
    distance_um = abs(distance_um)
    ramp_um = ELEVATOR_SPEED_UM_S * ELEVATOR_SPEED_UM_S // ELEVATOR_ACCELERATION_UM_S2
    if distance_um >= ramp_um:
        return (distance_um - ramp_um) * 1000000 // ELEVATOR_SPEED_UM_S + 2 * (
            ELEVATOR_SPEED_UM_S * 1000 // (ELEVATOR_ACCELERATION_UM_S2 // 1000)
        )
    return int(2000000 * (distance_um / ELEVATOR_ACCELERATION_UM_S2) ** 0.5)
