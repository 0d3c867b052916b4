"""The board's raw noise under the health tests of SP 800-90B (4.4).

These are the start-up, repetition count and adaptive proportion tests; ``lag_test`` adds a test for patterns.
A sample is one raw bit of the ring oscillator. Conditioning would hide a failed or biased source, so the
tests see the raw bits. The stated entropy of a sample is a quarter of an ideal bit. The cutoffs follow from
it and from a false-alarm rate of 2^-20 (``tests/fairness/test_generator.py`` computes them again).
"""

from sabot_firmware.rng import RngFailed, lag_test

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ENTROPY_MILLIBITS = 250  # stated min-entropy of one sample, in thousandths of a bit
REPETITION_CUTOFF = 81  # 1 + ceil(20 / 0.25)
WINDOW = 1024  # samples of one adaptive proportion test, for a binary source
PROPORTION_CUTOFF = 915  # 1 + the quantile of B(1024, 2^-0.25) at 1 - 2^-20
START_UP = 2048  # samples looked at, and thrown away, before the first is used


class EntropySource:
    """The raw source, tested sample by sample. After a failed test it gives nothing until ``start``."""

    def __init__(
        self,
        read: "Callable[[int], bytes]",
        count: "Callable[[bytearray, int, int], int]" = lag_test.count,
    ) -> None:
        """``count`` is the board's implementation of ``lag_test.count``."""
        self._read = read  # so many bytes of raw samples, eight to a byte, the first in the highest bit
        self._lags = lag_test.LagTest(count)
        self._works = False
        self._last = -1
        self._run = 0  # how often the last sample has come in a row
        self._first = 0  # of this window
        self._seen = 0  # samples of this window
        self._same = 0  # of them, how many are like the first

    def start(self) -> None:
        """Run the start-up test; RngFailed if the source is not as stated."""
        self._works = True
        self._last, self._run, self._seen = -1, 0, 0
        self._lags.start()
        self._sample(START_UP // 8)

    def entropy(self, bits: int) -> bytearray:
        """Raw samples with at least so many bits of entropy, by the stated entropy of each."""
        samples = -(-bits * 1000 // ENTROPY_MILLIBITS)
        return self._sample(-(-samples // 8))

    def _sample(self, count: int) -> bytearray:
        if not self._works:
            raise RngFailed("the noise source was not started, or has failed")
        data = bytearray(self._read(count))
        if len(data) != count:
            self._fail("the noise source gives less than it is asked for")
        self._look(data)
        lag = self._lags.look(data)
        if lag:
            self._fail("the noise source shows a pattern at lag %d" % lag)
        return data

    def _look(self, data: bytearray) -> None:
        """Run the repetition count and the adaptive proportion test over these samples, a byte at a time."""
        last, run, seen, first, same = self._last, self._run, self._seen, self._first, self._same
        for byte in data:
            if byte == 0xFF * last:
                run += 8
            else:
                if run + 7 >= REPETITION_CUTOFF:  # the first samples may still reach it
                    at = 7
                    while byte >> at & 1 == last:
                        run += 1
                        at -= 1
                    if run >= REPETITION_CUTOFF:
                        break
                last = byte & 1
                run = 1
                while run < 8 and byte >> run & 1 == last:
                    run += 1
            if run >= REPETITION_CUTOFF:
                break
            if seen == 0:
                first = byte >> 7
                same = 0
            same += lag_test.ONES[byte] if first else 8 - lag_test.ONES[byte]
            if same >= PROPORTION_CUTOFF:
                self._fail("the noise source leans to one side")
            seen += 8
            if seen == WINDOW:
                seen = 0
        if run >= REPETITION_CUTOFF:
            self._fail("the noise source repeats itself")
        self._last, self._run, self._seen, self._first, self._same = last, run, seen, first, same

    def _fail(self, why: str) -> None:
        self._works = False
        raise RngFailed(why)
