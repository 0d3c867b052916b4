"""Progressive meters: fed by every Royal 9 wager, paid from, and reset (MDM 12.K-O).

A meter counts ten-thousandths of a cent, so that a share in hundredths of a percent is exact; what is shown
and paid is whole cents, and the rest stays in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sabot_table.errors import BadSave
from sabot_table.paytables import Award
from sabot_table.ruleset import MeterTerms, MustHitTerms, Royal9Terms

UNITS = 10_000  # in a cent


@dataclass(frozen=True, slots=True)
class Meter:
    """One meter."""

    terms: MeterTerms
    units: int

    @property
    def cents(self) -> int:
        """What it shows and pays; a Must Hit meter never more than its maximum."""
        return min(self.units, self.most_units) // UNITS

    @property
    def most_units(self) -> int:
        """The most that it shows; what was contributed beyond waits for the next round of the meter."""
        return self.terms.maximum_cents * UNITS if isinstance(self.terms, MustHitTerms) else self.units

    def with_contribution(self, cents: int) -> "Meter":
        """With its share of so much wagered."""
        return replace(self, units=self.units + cents * self.terms.rate_basis_points)

    def share(self, percent: int) -> int:
        """The cents in so many percent of what it shows."""
        return self.cents * percent // 100

    def paid(self, cents: int) -> "Meter":
        """Less what was paid out of it."""
        return replace(self, units=self.units - cents * UNITS)

    def reset(self) -> "Meter":
        """Back where it starts again, with what was contributed beyond the maximum."""
        beyond = self.units - min(self.units, self.most_units)
        return replace(self, units=self.terms.reset_cents * UNITS + beyond)


@dataclass(frozen=True, slots=True)
class Meters:
    """All meters of a table."""

    by_name: Mapping[str, Meter]

    @classmethod
    def initial(cls, terms: Royal9Terms) -> "Meters":
        """As a table opens with them."""
        named: dict[str, MeterTerms] = {"star": terms.star, "spade": terms.spade, "heart": terms.heart}
        if terms.must_hit is not None:
            named["must-hit"] = terms.must_hit
        return cls({name: Meter(each, each.initial_cents * UNITS) for name, each in named.items()})

    def with_contribution(self, cents: int) -> "Meters":
        """With every meter's share of so much wagered."""
        return Meters({name: meter.with_contribution(cents) for name, meter in self.by_name.items()})

    @property
    def must_hit_due(self) -> bool:
        """Whether the Must Hit meter reached its maximum, so that it must be won now (MDM 12.N-O)."""
        meter = self.by_name.get("must-hit")
        return meter is not None and meter.units >= meter.most_units

    def amount(self, award: Award) -> int:
        """What an award pays as the meters stand, stake included."""
        return award.cents if award.meter is None else self.by_name[award.meter].share(award.percent)

    def after(self, awards: list[tuple[Award, int]]) -> "Meters":
        """Once these awards are paid, each as it was before any was paid; a full one resets its meter."""
        meters = dict(self.by_name)
        for award, cents in awards:
            if award.meter is not None and award.percent < 100:
                meters[award.meter] = meters[award.meter].paid(cents)
        for award, _ in awards:
            if award.meter is not None and award.percent == 100:
                meters[award.meter] = meters[award.meter].reset()
        return Meters(meters)

    def save(self) -> dict[str, int]:
        """Each meter's units, for `restore`."""
        return {name: meter.units for name, meter in self.by_name.items()}

    @classmethod
    def restore(cls, terms: Royal9Terms, saved: Mapping[str, int]) -> "Meters":
        """The meters that were saved."""
        initial = cls.initial(terms).by_name
        if set(saved) != set(initial):
            raise BadSave(f"meters {sorted(saved)} were saved and {sorted(initial)} are there")
        return cls({name: replace(meter, units=saved[name]) for name, meter in initial.items()})
