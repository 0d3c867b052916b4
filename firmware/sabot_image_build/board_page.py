"""Generates docs/board.md from the firmware's table of pins."""

from pathlib import Path

from sabot_firmware import hardware
from sabot_firmware.boards.rp2040 import heap, pins
from sabot_image_build.modules import ROOT
from sabot_protocol import grid, schema

PAGE = ROOT / "docs" / "board.md"
TEXT = Path(__file__).parent / "board_page.txt"
ROLLERS = {hardware.FEED: "feed roller", hardware.INSERT: "insertion roller", hardware.DEAL: "deal roller"}
SENSORS = [row[0].replace("_", " ") for row in schema.SENSORS]
LEVEL = {pins.HIGH: "high", pins.LOW: "low"}
OUTPUTS = (
    (pins.FEED_BACK_BIT, "feed roller turns back"),
    (pins.INSERT_BACK_BIT, "insertion roller turns back"),
    (pins.DEAL_BACK_BIT, "deal roller turns back"),
    (pins.PUSHER_FORWARD_BIT, "pusher goes forward"),
    (pins.SHELF_DOWN_BIT, "carriage goes down to the shelf"),
    (pins.SHELF_UP_BIT, "carriage goes up"),
    (pins.LAMP_BIT, "lamp, red light"),
    (pins.LAMP_BIT + 1, "lamp, green light"),
    (pins.LAMP_BIT + 2, "lamp, blue light"),
)

Row = tuple[int, str, str, str]


def pins_of_the_pico() -> list[Row]:
    """Pin, part, direction and the level that means 1, by pin."""
    rows: list[Row] = [
        (pins.UART_TX, "second cable, UART", "out", "115200 8N1"),
        (pins.UART_RX, "second cable, UART", "in", "115200 8N1"),
        (pins.EXPANDER_INTERRUPT, "expanders: an input has changed", "in, interrupt", "low"),
        (pins.I2C_SDA, "I2C bus 0, data", "both", "400 kHz"),
        (pins.I2C_SCL, "I2C bus 0, clock", "out", "400 kHz"),
        (pins.ELEVATOR_STEP, "elevator, a step", "out, PWM and DMA", "rising edge"),
        (pins.ELEVATOR_UP, "elevator, up", "out", "high"),
        (pins.PUSHER_STEP, "pusher, a step", "out, PWM and DMA", "rising edge"),
        (pins.GRIPPER, "gripper closes", "out", "high"),
        (pins.SPI_MISO, "SPI bus 0, from the FRAM", "in", "8 MHz"),
        (pins.FRAM_SELECT, "FRAM selected", "out", "low"),
        (pins.SPI_SCK, "SPI bus 0, clock", "out", "8 MHz"),
        (pins.SPI_MOSI, "SPI bus 0, to the FRAM", "out", "8 MHz"),
        (pins.HEIGHT_ADC, "height of the stack", "in, analogue", f"{pins.HEIGHT_UM_PER_COUNT} um a count"),
        (pins.ENTRY_COLOUR_ADC, "colour at the entry", "in, analogue", "see below"),
        (pins.EXIT_COLOUR_ADC, "colour at the exit", "in, analogue", "see below"),
    ]
    for roller, drive, encoder in pins.ROLLERS:
        rows.append((drive, ROLLERS[roller], "out", "high"))
        rows.append((encoder, f"{ROLLERS[roller]}, encoder", "in, counted", f"{pins.ENCODER_UM} um a pulse"))
    for sensor, pin, one in pins.EDGES:
        rows.append((pin, SENSORS[sensor], "in, interrupt", LEVEL[one]))
    return sorted(rows)


def page() -> str:
    """The whole page."""
    told = "\n".join(
        f"| GP{pin} | {part} | {direction} | {level} |" for pin, part, direction, level in pins_of_the_pico()
    )
    inputs = "\n".join(
        f"| {chip} | {bit} | {SENSORS[sensor]} | {LEVEL[one]} |" for sensor, chip, bit, one in pins.INPUTS
    )
    chip, bit, one = pins.PRESENCE_CONTACT
    inputs += f"\n| {chip} | {bit} | contact in the logic compartment | {LEVEL[one]} |"
    outputs = "\n".join(f"| {pins.OUTPUT_CHIP} | {bit} | {what} |" for bit, what in OUTPUTS)
    nothing, red, blue, face = pins.COLOUR_LIMITS
    return TEXT.read_text().format(
        pins=told,
        inputs=inputs,
        outputs=outputs,
        expanders=" and ".join(f"0x{address:02X}" for address in pins.EXPANDERS),
        display=f"0x{pins.DISPLAY:02X}",
        reader=f"0x{pins.CARD_READER:02X}",
        nothing=nothing,
        red=red,
        blue=blue,
        face=face,
        log_kb=pins.LOG_FLASH_BYTES // 1024,
        period=grid.PERIOD_MS,
        after=grid.ANSWERED_AFTER,
        grid_hold=heap.GRID_HOLD_BYTES,
        mark_kb=pins.MARK_FLASH_BYTES // 1024,
        house_kb=pins.HOUSE_FLASH_BYTES // 1024,
        evidence_kb=pins.EVIDENCE_FLASH_BYTES // 1024,
        collect=heap.COLLECT_BYTES,
        pause=heap.PAUSE_BYTES,
        hold=heap.HOLD_BYTES,
    )


if __name__ == "__main__":
    PAGE.write_text(page())
