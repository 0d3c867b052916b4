"""Whether memory grows: the slope of samples, which a few outliers do not move."""

from collections.abc import Sequence
from statistics import median

WARM_UP = 0.25  # caches fill and threads start: this share of the samples is left out


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """The median of the slopes between all pairs (Theil and Sen), of samples (when, how much)."""
    kept = samples[int(len(samples) * WARM_UP) :]
    if len(kept) < 4:
        raise ValueError("too few samples for a slope")
    pairs = [
        (b[1] - a[1]) / (b[0] - a[0]) for at, a in enumerate(kept) for b in kept[at + 1 :] if b[0] > a[0]
    ]
    return median(pairs)
