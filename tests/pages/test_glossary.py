"""The glossary: its page is up to date, and one thing has one name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mmaprobe.cli.glossary import GLOSSARY, PROPERTIES, page
from mmaprobe.cli.main import main
from mmaprobe.hypotheses.properties import STATEMENTS, statement_of
from mmaprobe.queries.kernel.questions.statements import MOST_BITS
from tests.places import DOCS

PAGE = DOCS / "glossary.md"
#: other names of one thing, and the one that it has here
INSTEAD = {
    r"mantissas?": "significand", r"denormals?|denormalised|sub-normal\w*": "subnormal", r"guard bits?": "F",
    r"(de)?normali[z]\w*": "normalise", r"minimi[z]\w*": "minimise", r"behaviors?": "behaviour",
    r"test vectors?": "vector", r"chopp(ed|ing)": "truncated",
}  # fmt: skip


def help_texts() -> Iterator[tuple[str, str]]:
    for command in (main, *main.commands.values()):
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            if not paragraph.startswith("\b"):  # examples
                yield str(command.name), paragraph
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                yield f"{command.name} {option.opts[-1]}", option.help


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "`make man` writes it"


def test_every_property_is_explained() -> None:
    """In the glossary, of the table of the statements, and on the page about `prove`."""
    (option,) = (one for one in main.commands["prove"].params if one.name == "wanted")
    asked = set(option.type.choices)  # type: ignore[attr-defined]
    assert asked == set(PROPERTIES)
    told = {word.term: word.meaning for word in GLOSSARY}
    assert all(PROPERTIES[name] in told[name] for name in asked)
    assert all(statement_of(name) in PROPERTIES[name] for name in STATEMENTS)
    rows = re.findall(r"^\| `.*", (DOCS / "prove.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert asked - {"equal"} == {name for row in rows for name in re.findall("`([a-z-]+)`", row)} & asked


def test_the_most_random_bits_are_said() -> None:
    """Where a reader meets `unbiased`."""
    assert MOST_BITS == 6
    for text in (
        next(word.meaning for word in GLOSSARY if word.term == "unbiased"),
        *((DOCS / name).read_text(encoding="utf-8") for name in ("prove.md", "units.md")),
    ):
        assert re.search(r"\brounded,?\s+by\s+at\s+most\s+six\s+random\s+bits\b", text)


def test_terms_are_in_order_and_defined_once() -> None:
    terms = [word.term.lower() for word in GLOSSARY]
    assert terms == sorted(set(terms), key=lambda term: term.replace("k, length", "k"))


def test_what_shows_a_term_exists() -> None:
    for word in GLOSSARY:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", word.shown):
            assert (PAGE.parent / target).is_file(), word.term
        for command in re.findall(r"`mmaprobe (\w+)", word.shown):
            assert command in main.commands, word.term


def test_help_points_to_the_glossary() -> None:
    assert "glossary" in (main.help or "")


PAGES = sorted([PAGE.parents[1] / "README.md", *PAGE.parent.rglob("*.md")])


def unused(text: str) -> set[str]:
    """The other names in a page or help text: code, names and what others printed do not count."""
    text = re.sub(r"```.*?```|`[^`]*`|\"[^\"]*\"|\b[\w/-]+\.\w+\b", " ", text, flags=re.DOTALL)
    return {word for word in INSTEAD if re.search(rf"\b({word})\b", text, re.IGNORECASE)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(PAGE.parents[1])))
def test_one_word_for_one_thing(path: Path) -> None:
    found = unused(path.read_text(encoding="utf-8").replace("Often called mantissa", ""))
    assert not found, {word: INSTEAD[word] for word in found}


def test_one_word_for_one_thing_in_the_help() -> None:
    assert not {(place, word) for place, text in help_texts() for word in unused(text)}


def test_another_name_is_found() -> None:
    assert unused("Two denormals differ in their mantissa") == {r"mantissas?", r"denormals?|denormalised|sub-normal\w*"}
    assert not unused('`mantissa` and "denormal" in xie-mantissa.yaml')
