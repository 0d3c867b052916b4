"""The modules frozen into the board's image; MicroPython's build reads this file.

The list of modules exists only here; the build of the file-system image reads it too.
"""

PROTOCOL = (
    "__init__",
    "codec",
    "device_credentials",
    "device_handshake",
    "device_port",
    "device_protocol",
    "device_requests",
    "diagnostics",
    "errors",
    "event_chain",
    "event_store",
    "executor",
    "frame",
    "frame_receiver",
    "grid",
    "key_store",
    "ledger",
    "link",
    "mac",
    "modes",
    "provisioning",
    "record_store",
    "schema",
    "schema_hash",
    "sensors",
    "session",
    "ticks",
    "wire_constants",
)
FIRMWARE = (
    "__init__",
    "command_table",
    "controller",
    "critical",
    "dealing",
    "deck_commands",
    "decks",
    "event_log",
    "half",
    "hardware",
    "height_model",
    "jam",
    "machine_commands",
    "machine_constants",
    "motion",
    "panel",
    "persistent_state",
    "provisioning_mark",
    "refusals",
    "rng/__init__",
    "rng/device_rng",
    "rng/draws",
    "rng/drbg",
    "rng/entropy_source",
    "rng/lag_test",
    "rng/persistent_seed",
    "rounds",
    "service",
    "shoe",
    "shuffle_commands",
    "shuffler",
    "wear",
    "whereabouts",
    "boards/__init__",
    "boards/rp2040/__init__",
    "boards/rp2040/analogue",
    "boards/rp2040/board",
    "boards/rp2040/cables",
    "boards/rp2040/board_clock",
    "boards/rp2040/presence_contact",
    "boards/rp2040/display",
    "boards/rp2040/edges",
    "boards/rp2040/elevator",
    "boards/rp2040/expander",
    "boards/rp2040/fram",
    "boards/rp2040/heap",
    "boards/rp2040/live_controller",
    "boards/rp2040/loader",
    "boards/rp2040/log_flash",
    "boards/rp2040/loop",
    "boards/rp2040/noise",
    "boards/rp2040/board_executor",
    "boards/rp2040/pins",
    "boards/rp2040/program",
    "boards/rp2040/pusher",
    "boards/rp2040/registers",
    "boards/rp2040/rollers",
    "boards/rp2040/stepper",
    "boards/rp2040/grid_cables",
)


def files(package: str, modules: "tuple[str, ...]") -> "tuple[str, ...]":
    """The files of a package's modules, below the folder that holds the package."""
    return tuple("%s/%s.py" % (package, module) for module in modules)


freeze("$(PORT_DIR)/modules", "rp2.py")  # what wraps MicroPython's own DMA, Flash and PIO
freeze("../protocol", files("sabot_protocol", PROTOCOL))
freeze(".", files("sabot_firmware", FIRMWARE))
freeze("../build/image", "sabot_components.py")  # what the image is made of, written by its build
freeze(".", ("_boot.py", "main.py"))
