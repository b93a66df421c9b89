"""Whether a tree of theorems is valid, is about the unit beside it, and rests on lemmas about this datapath; and
whether it gives the claim beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypotheses.claim import Claim
from queries.certificates.names import CLAIM, TREE, UNIT
from queries.certificates.reading import file_text
from queries.certificates.tree import Tree, statement_text
from queries.checking.finding import Contents, Finding, of_file, read_claim
from queries.kernel.effects import EFFECTS
from queries.kernel.lemmas import Lemma, query_of
from queries.kernel.opposite import RoundsOpposite
from queries.kernel.ranges import Range
from queries.kernel.recorded import Words
from queries.kernel.rounding_losses import LEMMAS
from queries.kernel.rounding_rises import RoundingRises, RoundingScales
from queries.kernel.shares import ShareClaim, WordIsSmall, WordsLeave, share_claim
from queries.kernel.undecided import ZerosGiveZero
from queries.properties.asked import read_document, read_unit
from queries.tactics.written import Written
from smtmodel.dot import Model
from smtmodel.formats import Format
from smtmodel.rounding import Target


@of_file(TREE)
def theorems(folder: Path, contents: Contents) -> Iterator[Finding]:
    """The theorems, one finding for each that is not valid, and what they state."""
    document = read_document(folder / TREE)
    tree = Tree(document)
    faults = list(tree.check())
    stated = [statement_text(tree, number) for number in tree.states] if not faults else []
    yield from (Finding(f"{TREE}, theorem {number}", fault, "fault") for number, fault in faults)
    if not faults:
        yield Finding(TREE, f"{len(tree.theorems)} theorems follow by their rules")
    yield from _unit(folder, document)
    wanted = share_claim(read_claim(folder, Claim).assertion) if CLAIM in contents.files else None
    models = [] if wanted is None else [zero.model for zero in wanted.zeros]
    for number, theorem in enumerate(document["theorems"]):
        if theorem.get("leaf") is not None:
            yield lemma_finding(folder, f"{TREE}, theorem {number}", document, theorem, contents.pieces, models)
    if wanted is not None:
        yield from _stated(folder, document, wanted)
    yield from (Finding(TREE, f"states: {text}") for text in stated)


@of_file(UNIT)
def _unit(folder: Path, document: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether the tree is about the unit of the unit file."""
    again = Written(read_unit(folder / UNIT)).stating((), {})
    formats = document["formats"]
    same = again["formats"] == formats[: len(again["formats"])] and again["unit"] == document["unit"]
    if same and again["nodes"] == document["nodes"][: len(again["nodes"])]:  # after them: of what it is rewritten to
        yield Finding(UNIT, f"the unit of {TREE}")
    else:
        yield Finding(UNIT, f"is not the unit of {TREE}", "fault")


@of_file(CLAIM)
def _stated(folder: Path, document: Mapping[str, Any], wanted: ShareClaim) -> Iterator[Finding]:
    """Whether what a tree states is what the claim of the claim file needs, which was made again."""
    unit = read_unit(folder / UNIT)
    goals = [document["theorems"][place]["goal"] for place in document["states"]]
    (within,) = (goal for goal in goals if goal["is"] == "Within")
    zeros = [goal["count"] for goal in goals if goal["is"] == "ZerosGiveZero"]
    again = Written(unit).restated(wanted, [Format(**fmt) for fmt in document["formats"]])
    same = all(within[name] == again[name] for name in ("space", "values"))
    enough = Fraction(within["share"]) <= wanted.share and Fraction(within["size"]) <= wanted.size
    one = {zero.model.unit.result for zero in wanted.zeros} == {unit.result}
    if same and enough and one and zeros == [zero.count for zero in wanted.zeros]:
        yield Finding(CLAIM, f"no admitted input decides, and every value is a number: {wanted.text}")
    else:
        yield Finding(CLAIM, f"{TREE} does not state what it needs", "fault")


def lemma_finding(folder: Path, place: str, document: Mapping[str, Any], theorem: Mapping[str, Any],
                  pieces: list[str], models: Sequence[Model]) -> Finding:  # fmt: skip
    """Whether the file of a lemma asks what this datapath gives for it."""
    name = str(theorem["leaf"])
    if name not in pieces:
        return Finding(place, f"rests on {name}, which is not in the manifest", "fault")
    try:
        lemma = _lemma_of(theorem["goal"], document["formats"], models)
        text = file_text(folder / f"{name}.smt2")
        same = query_of(lemma).text == text
    except Exception as error:  # a lemma about widths or formats that cannot be
        return Finding(place, f"cannot be read: {type(error).__name__}: {error}", "fault")
    if not same:
        return Finding(place, f"{name}.smt2 does not ask what the datapath gives for: {lemma.statement()}", "fault")
    return Finding(place, f"{name}.smt2 asks of the datapath: {lemma.statement()}")


def _lemma_of(goal: Mapping[str, Any], formats: list[Any], models: Sequence[Model]) -> Lemma:
    """A lemma as it is written; `models`: that of the tree, where it is about one."""

    def read(parts: Mapping[str, Any]) -> dict[str, Any]:
        kinds: dict[str, Callable[[Any], Any]] = dict.fromkeys(
            ("format", "given", "source", "into"), lambda value: Format(**formats[value])
        )
        kinds |= {"target": lambda value: Target(**read(value)), "words": lambda value: Words(**read(value)),
                  "window": tuple, "share": Fraction, "range": lambda value: Range(**value),
              "left": lambda value: Target(**read(value)), "right": lambda value: Target(**read(value))}  # fmt: skip
        return {name: kinds[name](value) if name in kinds else value for name, value in parts.items()}

    parts = read(goal)
    name = parts.pop("is")
    if name == ZerosGiveZero.__name__:
        (model,) = models
        return ZerosGiveZero(model, **parts)
    about = (*LEMMAS, *EFFECTS, RoundsOpposite, RoundingRises, RoundingScales, WordIsSmall, WordsLeave)
    (kind,) = (kind for kind in about if kind.__name__ == name)
    found: Lemma = kind(**parts)
    return found
