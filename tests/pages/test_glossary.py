"""The glossary: its page is up to date, and it has every term of art of the help texts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mmaprobe.cli.glossary import GLOSSARY, page
from mmaprobe.cli.main import main
from tests.places import DOCS

PAGE = DOCS / "glossary.md"
ENDINGS = ("", "s", "es", "ed", "d", "ing", "ly")

#: ordinary English of the help texts. A word that is in neither list is either a term of art (then define it in
#: cli/glossary.py) or belongs here
PLAIN = """
empty new stated
alter among call came certain carries change chosen
before none twice web well whether writes
cuda divide drawings either even far gpus hold kernels known lie lost
becomes infinite least markdown measure nan types odd overflow place samples simulators studies why
rule tests text tikzpicture
about above added adds after again against algorithms all alone alpha also and another answer apart append are
arithmetic ask assumed auto bad bar belong below beta both build built but cache called can cannot case changed
check code colours column come command compare compiled compiler complete compute confirm consistent contain
continues contradict could counts curves dask decides default differ difference different disagrees disk
distinguish document does draw drawn each earlier edited element end equal evaluate evaluation ever every
everything exercise exit expects explain expression failed families fault few find finished finite fit folder for
found from full function get give goes grow half has have here hex holds how hypotheses identify implementation
implements includes incomplete instead integers intermediate interrupt into its itself keep kept kinds knows
largest last later left library like limit line list loads log look lose machine made make many marks matplotlib
matrices matrix may memory mib minimise mmaprobe more most multiple must name need network next nonnegative nonzero
not nothing number numerical object observed off once one only open opposite option other out outcomes output own
gives several
page pair part path pays picture positive possible print process processor program proof properties prove published
python quantity query random read recompute reduce refute rejected repeat replays reported result reveal right
round ruler run same say scheduler script search second see separate serve set shape share short show shown simpler
simulation single size small some sqlite standard stands start stay step still stopped study subject sum table take
taken tell than that the their them then there these they this those three time timeout title together told too top
tree truncates turns two undecided under unexpected unknown unsigned until use verify version was what when where which
whole whose with within without word work workers write written yourself
combination condition cover latex millimetre paper pdf reach reached tikz width
"""

#: words that are not used, and what is said instead: one word for one thing
INSTEAD = {
    r"mantissas?": "significand", r"denormals?|denormalised": "subnormal",
    r"guard bits?": "F", r"(tell(s|ing)?|told) [^.:|]{0,80}apart": "distinguish",
    r"bit-for-bit": "bit for bit", r"(de)?normali[z]\w*": "normalise", r"minimi[z]\w*": "minimise",
    r"behaviors?": "behaviour", r"test vectors?": "vector", r"chopp(ed|ing)": "truncated", r"settled? by": "decided",
    r"bit-?wise|bit-(exact|accurate|identical)\w*": "bit for bit", r"settl(e|es|ed|ing)": "decide",
    r"leaves? standing|left standing": "consistent with", r"so many": "a number of", r"sub-normal\w*": "subnormal",
    r"held against|holds? (it|them|the \w+) against": "compared with", r"handed": "given",
}  # fmt: skip


def words_of(text: str) -> set[str]:
    """The lower-case words of a help text, without code, names, options and metavariables."""
    text = re.sub(r"`[^`]*`|\S*[/:@{}=.-]\S+|\b[A-Z_0-9]{2,}\b", " ", text)
    return {word.lower() for word in re.findall(r"[A-Za-z]{3,}", text)}


def help_texts() -> Iterator[tuple[str, str]]:
    for command in (main, *main.commands.values()):
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            if not paragraph.startswith("\b"):  # examples
                yield str(command.name), paragraph
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                yield f"{command.name} {option.opts[-1]}", option.help


def known(word: str, words: set[str]) -> bool:
    return any(word.removesuffix(ending) in words for ending in ENDINGS if word.endswith(ending))


def missing(text: str) -> set[str]:
    """The words of a text that are neither plain nor in the glossary."""
    defined = {word for entry in GLOSSARY for word in re.findall("[a-z0-9]+", entry.term.lower())}
    return {word for word in words_of(text) if not known(word, defined | set(PLAIN.split()))}


@pytest.mark.parametrize(("place", "text"), list(help_texts()))
def test_every_term_of_art_of_the_help_is_in_the_glossary(place: str, text: str) -> None:
    assert not missing(text), f"{place}: define these in cli/glossary.py, or add them to PLAIN"


def test_a_term_that_is_not_defined_is_found() -> None:
    assert missing("The mantissas of swizzled fragments") == {"mantissas", "swizzled", "fragments"}
    assert not missing("Vectors that distinguish candidates")


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "`make man` writes it"


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
    """The words of a page or help text that are not used here: code, names and what others printed do not count."""
    text = re.sub(r"```.*?```|`[^`]*`|\"[^\"]*\"|\b[\w/-]+\.\w+\b", " ", text, flags=re.DOTALL)
    return {word for word in INSTEAD if re.search(rf"\b({word})\b", text, re.IGNORECASE)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(PAGE.parents[1])))
def test_one_word_for_one_thing(path: Path) -> None:
    found = unused(path.read_text(encoding="utf-8").replace("Often called mantissa", ""))
    assert not found, {word: INSTEAD[word] for word in found}


def test_one_word_for_one_thing_in_the_help() -> None:
    assert not {(place, word) for place, text in help_texts() for word in unused(text)}


@pytest.mark.parametrize(
    "package", ["cli", "hypotheses", "mmaprobe", "queries", "reports", "runner", "smtmodel", "studies"]
)
def test_numbers_are_named_in_the_sources(package: str) -> None:
    """A docstring that says "so many" leaves the reader to look for the number."""
    for path in sorted((PAGE.parents[1] / package).rglob("*.py")):
        found = re.search(r"\bso many (?!(?:that|as)\b)", path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: name the parameter that says how many"


def test_a_word_that_is_not_used_is_found() -> None:
    assert unused("Two denormals are told apart by their mantissa") == {
        r"mantissas?", r"denormals?|denormalised", r"(tell(s|ing)?|told) [^.:|]{0,80}apart",
    }  # fmt: skip
    assert not unused('`mantissa` and "denormal" in xie-mantissa.yaml')
