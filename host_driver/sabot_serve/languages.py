"""The languages of the pages: gettext catalogues (``.po``) that are read once.

English is the phrase itself. The catalogues are text files that translators edit; ``make phrases`` brings
them up to date with the code.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from babel import Locale, negotiate_locale
from babel.messages.pofile import read_po

from sabot_serve.phrases import Say

FOLDER = Path(__file__).parent / "catalogues"
ENGLISH = "en"
LANGUAGES: Mapping[str, str] = {ENGLISH: "English", "zh-Hans": "简体", "zh-Hant": "繁體"}
"""Each language by its tag (BCP 47), with its name as its readers write it."""
REGIONS = {"zh": "zh-Hans", "zh-CN": "zh-Hans", "zh-SG": "zh-Hans"} | {
    f"zh-{each}": "zh-Hant" for each in ("TW", "HK", "MO")
}
"""Which script readers of a region use."""


@cache
def say_in(language: str) -> Say:
    """What translates phrases into a language; English for any that has no catalogue."""
    if language == ENGLISH or language not in LANGUAGES:
        return str
    with (FOLDER / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=Locale.parse(language, sep="-"))
    found = {str(each.id): str(each.string) for each in catalogue if each.id and each.string}
    return lambda phrase: found.get(phrase, phrase)


def language_of(asked: str, accepted: str) -> str:
    """The language of a page: the one that its address names, else the best of an Accept-Language header."""
    if asked in LANGUAGES:
        return asked
    wanted = [each.partition(";")[0].strip() for each in accepted[:200].split(",")]
    wanted = [REGIONS.get(each, each) for each in wanted]
    return negotiate_locale(wanted, list(LANGUAGES), sep="-") or ENGLISH


def next_language(language: str) -> str:
    """The language that the switch of a page leads to."""
    tags = list(LANGUAGES)
    return tags[(tags.index(language) + 1) % len(tags)]
