"""Every phrase of the pages is in every catalogue, and nothing that people read stands only in code."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from sabot_firmware import jam
from sabot_protocol.host.messages import Fault, Place
from sabot_serve import act_forms, phrases
from sabot_serve.dealer_view import NUMBERED, dealer_view
from sabot_serve.languages import FOLDER, LANGUAGES, language_of, next_language, say_in
from sabot_serve.page_words import DEALER
from sabot_serve.players_view import METERS, players_view
from sabot_serve.session_words import TEMPLATES, in_words, template_of
from sabot_session.acts import ACTS
from sabot_session.needs import NeedKind
from sabot_table.ruleset import load

CHINESE = [each for each in LANGUAGES if each != "en"]
VALUE = re.compile(r"%\(\w+\)s")
HAN = re.compile(r"[\u4e00-\u9fff]")
SERVE = FOLDER.parent
METHODS = [("**.py", "python"), ("templates/**.html", "jinja2")]


def extracted() -> set[str]:
    """Every phrase that the code marks."""
    found = extract_from_dir(SERVE, METHODS, keywords={"N_": None, "_": None})
    return {str(message) for _, _, message, _, _ in found}


def catalogue(language: str) -> Catalog:
    with (FOLDER / f"{language}.po").open("rb") as file:
        return read_po(file)


@pytest.mark.parametrize("language", CHINESE)
def test_every_phrase_is_translated_and_no_value_is_lost(language: str) -> None:
    marked = extracted()
    assert len(marked) > 400
    made = {str(each.id): each for each in catalogue(language) if each.id}
    assert set(made) == marked, "run 'make phrases', then translate what is new"
    for phrase, each in made.items():
        assert not each.fuzzy, phrase
        assert isinstance(each.string, str)
        assert each.string.strip(), f"'{phrase}' is not translated"
        assert sorted(VALUE.findall(phrase)) == sorted(VALUE.findall(each.string)), phrase
        assert "%" not in VALUE.sub("", each.string), phrase
        assert HAN.search(VALUE.sub("", each.string)) or not re.search("[a-z]", VALUE.sub("", phrase)), phrase


def test_the_two_scripts_differ() -> None:
    simplified, traditional = (say_in(each) for each in CHINESE)
    assert (simplified("BETS"), traditional("No more bets")) == ("下注", "停止下注")
    assert simplified("Dealer") == traditional("Dealer") == "荷官"
    differ = sum(simplified(each) != traditional(each) for each in DEALER.values())
    assert differ > len(DEALER) / 2


def test_the_address_or_the_browser_chooses_the_language() -> None:
    assert language_of("zh-Hant", "en") == "zh-Hant"
    assert language_of("tlh", "zh-HK, en;q=0.5") == "zh-Hant"
    assert language_of("", "zh-CN") == "zh-Hans"
    assert language_of("", "zh") == "zh-Hans"
    assert language_of("", "fr-FR, de") == language_of("", "") == "en"
    assert [next_language(each) for each in LANGUAGES] == ["zh-Hans", "zh-Hant", "en"]
    assert say_in("tlh")("BETS") == "BETS"


def test_everything_a_page_can_name_has_a_phrase() -> None:
    fields = {field.name: field for act in ACTS for field in act_forms.fields_of(act)}
    choices = {choice for act in ACTS for field in act_forms.fields_of(act) for choice in field.choices}
    wagers = {name for each in rule_sets() for name in load(each).offered}
    by_step = {"prepare_pack", "clear_fault"}
    for named, known in (
        (set(ACTS), phrases.ACTS),
        ({str(each) for each in NeedKind} - by_step, phrases.WORDS),
        (set(fields), phrases.FIELDS),
        (choices, phrases.CHOICES),
        ({each.name.lower() for each in Fault}, phrases.FAULT_NAMES),
        ({each.name.lower() for each in Place}, phrases.PLACES),
        (wagers, phrases.WAGERS),
        ({"star", "spade", "heart", "must-hit"}, METERS),
    ):
        assert named <= set(known)


def rule_sets() -> list[str]:
    folder = Path(str(load.__code__.co_filename)).parent / "rulesets"
    return sorted(each.stem for each in folder.glob("*.toml"))


def test_every_sentence_of_a_need_has_a_template(root: Path) -> None:
    """Each text that the session's source calls ``words``, with its values as gaps, fits some template."""
    found = [
        (path.name, text)
        for path in sorted((root / "host_driver/sabot_session").glob("*.py"))
        for text in sentences(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(found) > 50
    missing = [
        (name, text)
        for name, text in found
        if not any(re.fullmatch(text, template) for template in TEMPLATES)
        and template_of(re.sub(r"\\(.)", r"\1", text)) is None
    ]
    assert missing == []


def sentences(tree: ast.AST) -> Iterator[str]:
    """Patterns of what is assigned to ``words``, and of texts given to a form of a need."""
    for node in ast.walk(tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == "words":
                    values.append(node.value)
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    values += [
                        value
                        for name, value in zip(target.elts, node.value.elts, strict=True)
                        if isinstance(name, ast.Name) and name.id == "words"
                    ]
        for value in values:
            yield from patterns(value)


def patterns(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield re.escape(value.value)
    elif isinstance(value, ast.IfExp):
        yield from patterns(value.body)
        yield from patterns(value.orelse)
    elif isinstance(value, ast.JoinedStr) and "steps" not in ast.dump(value):  # a fault has its own phrases
        yield "".join(
            re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in value.values
        )


def test_every_step_of_a_fault_has_a_template() -> None:
    for fault in Fault:
        for half in ("shuffler", "shoe"):
            steps = [each.strip() for each in NUMBERED.split(jam.steps_for(fault.name.lower(), half)) if each]
            assert steps
            for each in steps:
                assert template_of(each), each
                assert HAN.search(in_words(say_in("zh-Hans"), each))
                assert in_words(str, each) == each


def test_a_value_that_is_a_word_is_translated_too() -> None:
    say = say_in("zh-Hans")
    words = in_words(say, "take RED off the table: 51 cards instead of 52")
    assert words == "将红牌撤离本台\uff1a51 张\uff0c应有 52 张"
    assert in_words(say, "open the shoe door") == "打开牌靴的门"
    assert in_words(say, "polish the shoe") == "polish the shoe"


@pytest.mark.parametrize("language", CHINESE)
@pytest.mark.parametrize("moment", ["bets", "expose", "settled"])
def test_a_view_has_no_english_left(snapshots: dict[str, Any], language: str, moment: str) -> None:
    say = say_in(language)
    left = [
        text
        for view in (dealer_view(snapshots[moment], say), players_view(snapshots[moment], say))
        for text in texts(view)
    ]
    assert left == []


KEYS = (
    "head.word", "head.sentence", "head.void", ".label", ".detail", ".gives_back", ".sentence", ".steps",
    "packs.name", "packs.state", "hands.name", "lines.do", "lines.wager", ".points", ".phase",
    "hands.outcome", "path.label", "wager_names",
)  # fmt: skip
ENGLISH = re.compile(r"[A-Za-z]{3,}")


def texts(view: Any, path: str = "") -> Iterator[str]:
    """Texts that people read and that have English words in them."""
    if isinstance(view, Mapping):
        for name, part in view.items():
            inside = path if path.endswith("wager_names") else f"{path}.{name}"
            yield from texts(part, inside)
    elif isinstance(view, list | tuple):
        for part in view:
            yield from texts(part, path)
    elif isinstance(view, str) and path.endswith(KEYS) and ENGLISH.search(view):
        yield f"{path}: {view}"


def test_no_sentence_stands_in_a_script() -> None:
    for path in [*(SERVE / "static").glob("*.js"), *(SERVE / "static_players").glob("*.js")]:
        if path.name == "service.js":
            continue  # the technician's page is in English only
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        assert re.findall(r'["`][A-Z][a-z]+ [a-z]+[^"`]*["`]', code) == [], path.name
