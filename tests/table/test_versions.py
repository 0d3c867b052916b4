"""Least versions of a device's components, by its model."""

import pytest

from sabot_table.errors import RuleViolation
from sabot_table.ruleset import load
from sabot_table.versions import NotAVersion, at_least, check_components, version

ENOUGH = {"Mico32": "3.3.027", "CardRec": "4.0.018", "RNG": "1.002.004"}


@pytest.mark.rule("WA3 versions")
def test_versions_compare_as_numbers_part_by_part() -> None:
    assert version("v3.3.027") == (3, 3, 27)
    for have, least, enough in (
        ("3.3.027", "3.3.027", True), ("3.3.27", "3.3.027", True), ("3.3.100", "3.3.027", True),
        ("3.10.0", "3.3.027", True), ("3.3.026", "3.3.027", False), ("3.3", "3.3.0", True),
        ("4", "3.3.027", True), ("3.3", "3.3.027", False),
    ):  # fmt: skip
        assert at_least(have, least) is enough, (have, least)


@pytest.mark.rule("WA3 versions")
def test_a_device_of_the_model_with_enough_in_each_component_may_be_used() -> None:
    check_components(load("wa-three-card-baccarat"), "i-Deal", ENOUGH)
    check_components(load("md-three-card-baccarat"), "anything", {})


@pytest.mark.rule("WA3 versions")
@pytest.mark.parametrize("component", sorted(ENOUGH))
def test_each_component_can_be_too_old_or_unknown(component: str) -> None:
    rules = load("wa-three-card-baccarat")
    for have in ("0.9", "", "new"):
        with pytest.raises(RuleViolation, match=f"{component} of i-Deal is") as refused:
            check_components(rules, "i-Deal", ENOUGH | {component: have})
        assert refused.value.clause == "WA3 versions"
    with pytest.raises(RuleViolation, match=f"no version of {component}"):
        check_components(rules, "i-Deal", {name: each for name, each in ENOUGH.items() if name != component})


@pytest.mark.rule("WA3 versions")
def test_a_model_that_is_not_listed_is_refused() -> None:
    with pytest.raises(RuleViolation, match="'Sabot' is not listed"):
        check_components(load("wa-three-card-baccarat"), "Sabot", ENOUGH)


@pytest.mark.parametrize("text", ["", "3..1", "3.x", "-1", "3.³"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(NotAVersion):
        version(text)
