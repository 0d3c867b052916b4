"""Everything that is generated, and where it goes."""

from pathlib import Path

from sabot_protocol.generate import (
    canonical_schema,
    modes_page,
    protocol_page,
    sensor_numbers,
    typed_messages,
    vectors,
    wireshark,
)
from sabot_protocol.generate.checkout import Artefact

# To add one: a module with ``render() -> str``, and a line here.
ARTEFACTS = (
    canonical_schema.ARTEFACT,
    Artefact("protocol/sabot_protocol/sensors.py", sensor_numbers.render),
    Artefact("protocol/sabot_protocol/host/messages.py", typed_messages.render),
    Artefact("protocol/vectors/messages.json", vectors.render_messages),
    Artefact("protocol/vectors/frames.json", vectors.render_frames),
    Artefact("protocol/wireshark/sabot.lua", wireshark.render),
    Artefact("docs/protocol.md", protocol_page.render),
    Artefact("docs/protocol-examples.md", protocol_page.render_examples),
    Artefact("docs/modes.md", modes_page.render),
)


def stale(root: Path) -> list[Artefact]:
    """The artefacts whose files are not what the schema gives now."""
    return [artefact for artefact in ARTEFACTS if artefact.is_stale(root)]
