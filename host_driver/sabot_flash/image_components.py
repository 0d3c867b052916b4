"""What an image says of itself: its components by name, version and hash of sources, as text in its bytes.

The build puts the text into the module ``sabot_components``. A production board answers ``component`` with a
hash of the sources' hash and of the program in its flash (`over_program`). So what was flashed can be
compared with what answers.
"""

import hashlib
import re
from dataclasses import dataclass

from sabot_flash.errors import BadImage

_TEXT = re.compile(rb"sabot-image 1\n((?:[a-z_]{1,24} [!-~]{1,24} [0-9a-f]{64}\n){1,16})end\n")


@dataclass(frozen=True, slots=True)
class ImageComponent:
    """A named part of the software."""

    name: str
    version: str
    sha256: bytes


def components_in(data: bytes) -> tuple[ImageComponent, ...]:
    """The components that an image names; BadImage if it names none, or different ones twice."""
    found = {each.group(1) for each in _TEXT.finditer(data)}
    if len(found) != 1:
        raise BadImage(
            "the image does not say what it is made of"
            if not found
            else "the image says twice, and differently, what it is made of"
        )
    made = []
    for line in found.pop().decode("ascii").splitlines():
        name, version, digest = line.split(" ")
        made.append(ImageComponent(name, version, bytes.fromhex(digest)))
    return tuple(made)


def over_program(made: tuple[ImageComponent, ...], program_sha256: bytes) -> tuple[ImageComponent, ...]:
    """The components as a board with this program reports them."""
    return tuple(
        ImageComponent(each.name, each.version, hashlib.sha256(each.sha256 + program_sha256).digest())
        for each in made
    )
