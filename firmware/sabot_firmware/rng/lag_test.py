"""The lag test: how often a noise sample equals the sample 1, 2, ... 64 samples before it.

The tests of SP 800-90B detect a source that is stuck or biased. A source with a pattern (0101...) passes
them. If each sample has H bits of min-entropy, whatever came before it, no guess of a sample is right with a
probability above 2^-H: neither "as the sample ``lag`` samples before" nor the opposite. The cutoff is
therefore a quantile of B(1024, 2^-H), for a false alarm in 2^27: one in 2^20 windows for 64 lags and two
signs together (``tests/fairness/test_generator.py`` computes it again).
"""

from array import array

from sabot_firmware.rng import wipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LAGS = 64
WINDOW = 1024  # samples that are judged together
CUTOFF = 925  # 1 + the quantile of B(1024, 2^-0.25) at 1 - 2^-27

BEFORE = 9  # bytes kept of what came before: 64 samples, and one byte more so that a shift finds its bits
_ROOM = 128


def _ones_of(byte: int) -> int:
    return 0 if byte == 0 else (byte & 1) + _ones_of(byte >> 1)


ONES = bytes([_ones_of(byte) for byte in range(256)])


def count_differing(samples: bytearray, end: int, lag: int) -> int:
    """How many samples from byte ``BEFORE`` to byte ``end`` differ from the one ``lag`` samples before."""
    ones = ONES
    bytes_back, shift = lag >> 3, lag & 7
    differing = 0
    for at in range(BEFORE, end):
        earlier = at - bytes_back
        differing += ones[samples[at] ^ ((samples[earlier - 1] << 8 | samples[earlier]) >> shift & 0xFF)]
    return differing


def count_in_one_number(samples: bytearray, end: int, lag: int) -> int:
    """The same with ``int.bit_count``, which is hundreds of times faster on CPython."""
    number = int.from_bytes(samples[:end], "big")
    return ((number ^ number >> lag) & (1 << 8 * (end - BEFORE)) - 1).bit_count()


count = count_in_one_number if hasattr(0, "bit_count") else count_differing


class LagTest:
    """Counts over windows of samples. It keeps only the last 72 samples, which ``start`` wipes."""

    def __init__(self, count: "Callable[[bytearray, int, int], int]" = count) -> None:
        """``count`` may be a faster implementation of a board."""
        self._count = count
        self._samples = bytearray(BEFORE + _ROOM)
        self._differing = array("H", bytes(2 * LAGS))
        self._before = 0  # bytes that are there of what came before
        self._seen = 0  # samples of this window

    def start(self) -> None:
        """Start anew, without earlier samples."""
        wipe(self._samples)
        self._before = 0
        self._begin_window()

    def _begin_window(self) -> None:
        self._seen = 0
        for lag in range(LAGS):
            self._differing[lag] = 0

    def look(self, data: "bytes | bytearray") -> int:
        """Test bytes of eight samples each; return the lag with a pattern, or 0."""
        samples = self._samples
        at = 0
        while at < len(data):
            if self._before < BEFORE:  # the first ones only serve those after them
                samples[self._before] = data[at]
                self._before += 1
                at += 1
                continue
            take = min(len(data) - at, _ROOM, (WINDOW - self._seen) >> 3)
            end = BEFORE + take
            for index in range(take):
                samples[BEFORE + index] = data[at + index]
            at += take
            for lag in range(1, LAGS + 1):
                self._differing[lag - 1] += self._count(samples, end, lag)
            self._keep(end)
            self._seen += take << 3
            if self._seen == WINDOW:
                lag = self._judge()
                self._begin_window()
                if lag:
                    return lag
        return 0

    def _keep(self, end: int) -> None:
        """Keep the last samples and overwrite the others."""
        samples = self._samples
        for index in range(BEFORE):
            samples[index] = samples[end - BEFORE + index]
        for index in range(BEFORE, end):
            samples[index] = 0

    def _judge(self) -> int:
        for lag in range(LAGS):
            differing = self._differing[lag]
            if differing >= CUTOFF or WINDOW - differing >= CUTOFF:
                return lag + 1
        return 0
