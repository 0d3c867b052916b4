"""What the running image is made of: hashes of its components, computed over the program in flash.

A component's hash is SHA-256 of two parts: the hash of the component's sources, as the build wrote it, and
the SHA-256 of the whole program. So an image in which one byte was changed has other hashes. A forged image
can still send the hashes of another one (docs/security.md).
"""

from hashlib import sha256

from sabot_protocol.codec import enum_number

try:
    from sabot_image import program  # type: ignore[import-not-found]
except ImportError:  # another image than ours: the application lies elsewhere, and its loader has checked it
    program = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash as Hash

SLICE = 2048  # bytes hashed at a time: about a millisecond


def _built() -> "dict[int, tuple[str, bytes]]":
    """Version and hash of the sources of each component by number; empty if the build wrote none."""
    try:
        from sabot_components import COMPONENTS
    except ImportError:
        return {}
    return {enum_number("Component", name): (version, digest) for name, version, digest in COMPONENTS}


class RunningImage:
    """The components of the image that runs. It is made when somebody asks for the first time."""

    def __init__(self) -> None:
        self._components = _built()
        self._digest: bytes | None = None  # of the program
        self._hash: Hash | None = None
        self._at = 0

    def component(self, number: int) -> "tuple[bytes, str] | None":
        """Hash and version of a component; None if there is no such one. ``ready`` must be true."""
        found = self._components.get(number)
        if found is None:
            return None
        version, sources = found
        if self._digest is None:
            return sources, version
        return sha256(sources + self._digest).digest(), version

    def ready(self) -> bool:
        """Whether the program is hashed; until then ``work`` hashes it."""
        return program is None or self._digest is not None

    def work(self) -> bool:
        """Hash one slice; False if there is nothing to do."""
        if program is None or self._digest is not None:
            return False
        view = program()
        hashed = sha256() if self._hash is None else self._hash
        end = min(self._at + SLICE, len(view))
        hashed.update(view[self._at : end])
        self._at = end
        self._hash = hashed
        if end == len(view):
            self._digest = hashed.digest()
            self._hash = None
        return True
