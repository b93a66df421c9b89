"""The statement of a certificate in words, made from its files alone, when it is written and when it is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from mmaprobe.hypotheses.properties import statement_of
from mmaprobe.queries.certificates.claim_files import read_claim, references
from mmaprobe.queries.certificates.names import (
    CLAIM,
    COVER,
    DESIGN,
    HELD,
    LEFT,
    LEFT_PLAN,
    LOG,
    NUMBERED,
    PLAN,
    PLAN_END,
    PLANS,
    PROPERTY,
    QUESTION,
    RIGHT,
    RIGHT_PLAN,
    UNIT,
    WITNESS,
)
from mmaprobe.queries.certificates.plan_files import plan_texts, read_plan
from mmaprobe.queries.certificates.questions import PADDING, named_unit, read_document
from mmaprobe.queries.kernel.bounds.wording import premises_of, premises_of_plan, raised, raised_in
from mmaprobe.queries.kernel.questions.statements import exchanged_text
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.plan_files import plans
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text

COMPARED = {
    "value": "results are compared as values",
    "bits": "results are compared bit by bit; two NaNs are equal, unless both units name the pattern of theirs",
}
FALLS = "+0 and -0 are equal, and a NaN neither rises nor falls"
#: the units that properties are about, where these are not `LEFT`
SUBJECTS = {PADDING: RIGHT, "unbiased": f"the unit whose results {LEFT} adds"}
NAMES_OF_PLAN = ("plan", "about", "source", "evidence")  # keys of a plan file that say nothing of its arithmetic
EVERY = "inputs: all there are, infinities, NaNs and subnormal numbers too"


def statement(texts: Mapping[str, str]) -> str:
    """The statement of a certificate's files, whose texts are given by name: the statement itself on the first line,
    then its inputs, units and windows. Raises the errors of reading the files."""
    for name, lines in _KINDS.items():
        if name in texts:
            return "\n".join(plain_line(line) for line in lines(texts))
    return "Nothing is stated."


def guide(texts: Mapping[str, str]) -> str:
    """The page about certificates of this kind, from which its README is made."""
    return "witness.md" if WITNESS in texts else "log.md"


def plain_line(text: str) -> str:
    """A line with escapes for the unprintable characters, which a terminal might obey."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


# -- units, inputs, plans


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _described(unit: Unit) -> str:
    scales = f", scale factors {unit.scale.name} of {unit.scale_block} products" if unit.scale is not None else ""
    more = "".join(f"{key} in {fmt.name}, " for key, fmt in unit.more)
    addend = f"c in {unit.c.name}" if unit.addend else "without c"
    return (f"{counted(unit.length, 'product')} of {unit.a.name} and {unit.b.name}, {addend}, "
            f"{more}d in {unit.rounding.format.name}{scales}")  # fmt: skip


def _units(texts: Mapping[str, str], *names: str) -> Iterator[str]:
    for name in names:
        unit = parse_unit(texts[name], name)
        yield f"{name}: {unit.reference or 'a unit'}: {_described(unit)}; SHA-256 {_digest(texts[name])}"


def _plans(texts: Mapping[str, str], *names: str) -> Iterator[str]:
    for name in names:
        data = read_yaml(texts[name], name).data
        yield f"{name}: {data.get('plan', 'a plan')}; SHA-256 {_digest(texts[name])}"
        for section in [key for key in data if key not in NAMES_OF_PLAN]:
            entries = [f"{key}: {text}" for key, text in data[section].items()]
            lines = entries if section in ("words", "steps") else [", ".join(entries)]
            yield from (f"{name}: {section}: {line}" for line in lines)
    used = {unit for name in names for unit in read_yaml(texts[name], name).data["units"].values()}
    yield from _units(texts, *sorted(used))


def _inputs(inputs: Mapping[str, Any]) -> str:
    """The inputs of a statement, in words."""
    words = [name.replace("_", " ") for name, value in inputs.items() if value is True]
    if (window := inputs["exponents"]) is not None:
        words.append(f"with exponents from {window['min']} to {window['max']}")
    if fixed := inputs["zero_terms"]:
        words.append(f"with terms {', '.join(map(str, fixed))} zero")
    if not words:
        return EVERY
    return f"inputs: those alone that are {', '.join(words)}"


# -- the kinds of certificates


def _asked(document: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """A question about left.yaml and right.yaml, in words."""
    match document["asks"]:
        case "designed":
            ports = ", ".join(f"{name} at {port}" for name, port in document["ports"].items())
            return f"the design {document['module']} of {DESIGN} (ports {ports}) gives the same d as {LEFT}"
        case "agree":
            lengths = {parse_unit(texts[name], name).length for name in (LEFT, RIGHT)}
            beyond = f", the longer one with products of +0 beyond the first {min(lengths)}" * (len(lengths) > 1)
            return f"{LEFT} and {RIGHT} give the same d{beyond}"
        case "reordered":
            return f"{LEFT} gives the same d with its products in the order {', '.join(map(str, document['order']))}"
        case "negated":
            reads = parse_unit(texts[LEFT], LEFT).addend
            return f"of {LEFT}, {'-d(-a, b, -c) is d(a, b, c)' if reads else '-d(-a, b) is d(a, b)'}"
    raised = document["raised"]
    return f"of {LEFT}, d does not fall when {'c' if raised is None else f'product {raised}'} rises"


def _question(texts: Mapping[str, str]) -> Iterator[str]:
    document = read_document(texts, QUESTION)
    yield _asked(document, texts)
    yield from _compared(document)
    yield from _sides(texts)


def _sides(texts: Mapping[str, str]) -> Iterator[str]:
    """The sides of a question: two units, or a unit and the netlist of a design."""
    yield from _units(texts, *(name for name in (LEFT, RIGHT) if name in texts))
    if DESIGN in texts:
        made = "the netlist that Yosys made of the design, whose own files are not here"
        yield f"{DESIGN}: {made}; SHA-256 {_digest(texts[DESIGN])}"


def _property(texts: Mapping[str, str]) -> Iterator[str]:
    document = read_document(texts, PROPERTY)
    wanted = document["property"]
    yield f"{UNIT} is {wanted}: {_statement(wanted, texts[UNIT])}"
    yield from _compared(document)
    yield from _units(texts, UNIT)


def _statement(wanted: str, text: str) -> str:
    """A property of the unit of a file, in words."""
    unit = parse_unit(text, UNIT)
    return statement_of(wanted, unit.addend, *exchanged_text(Model(UNIT, unit)))


def _compared(document: Mapping[str, Any]) -> Iterator[str]:
    """The inputs of a question, the results that are compared, and the shorter units of zero-padding."""
    wanted = document.get("property", "")
    if wanted == PADDING:
        lengths = ", ".join(map(str, document["lengths"]))
        yield f"the whole one is {document['model']}, the shorter ones are that with length {lengths}"
    yield _inputs(document["inputs"])
    falls = wanted.startswith("monotonic") or document.get("asks") == "raised"
    yield FALLS if falls else COMPARED[document["compare"]]


def _witness(texts: Mapping[str, str]) -> Iterator[str]:
    document = read_document(texts, WITNESS)
    if CLAIM in texts:
        quantifier = read_yaml(texts[CLAIM], CLAIM).data.get("quantifier", "all")
        yield f"an input {'refutes' if quantifier == 'all' else 'shows'} {next(_claim(texts))}"
        yield from list(_claim(texts))[1:]
    elif UNIT in texts:
        yield f"no error bound holds for a chain of {document['length']} products of {UNIT}: it wraps on an input"
        yield from (f"input {place}: {_values(row)}" for place, row in enumerate(document["rows"]))
        yield from _units(texts, UNIT)
        return
    elif LEFT_PLAN in texts:
        yield f"{LEFT_PLAN} and {RIGHT_PLAN} differ for K = {document['length']}, on an input"
        places = ", ".join(map(str, document["places"]))
        yield f"its products are those of the places {places}; all others are zero"
        yield from _plans(texts, LEFT_PLAN, RIGHT_PLAN)
    else:
        wanted = document["property"]
        subject = SUBJECTS.get(wanted, LEFT)
        asked = "" if wanted == "equal" else f", and so that {subject} is {wanted} ({_statement(wanted, texts[LEFT])})"
        yield f"it is not true that {_asked(document, texts)}{asked}: the input below shows it"
        yield from _compared(document)
        yield from _sides(texts)
    yield f"input: {_values(document['values'])}"


def _values(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _plans_equal(texts: Mapping[str, str]) -> Iterator[str]:
    document = read_document(texts, PLANS)
    multiples, length = document["multiples"], document["length"]
    where = f"every K that is a multiple of {multiples}" if multiples else f"K = {length}"
    yield f"{LEFT_PLAN} and {RIGHT_PLAN} give the same d, for {where}"
    yield EVERY
    yield COMPARED["bits"]
    yield from _plans(texts, LEFT_PLAN, RIGHT_PLAN)


def _cover(texts: Mapping[str, str]) -> Iterator[str]:
    document = read_document(texts, COVER)
    cases, changes = counted(len(document["cases"]), "case"), counted(len(document["changes"]), "change")
    yield f"no input of {UNIT} reaches any of {cases}, and {changes} of it alter no result"
    yield f"{COVER}, which lists them: SHA-256 {_digest(texts[COVER])}"
    for change in document["changes"]:
        yield f"{change['unit']} gives the same d as {UNIT}, and is called {change['change']} by its writer"
    yield from _units(texts, UNIT, *dict.fromkeys(change["unit"] for change in document["changes"]))


def _bounds(texts: Mapping[str, str]) -> Iterator[str]:
    """Bounds in the words of the log; the check compares these with the words of the log's theorems."""
    document = read_document(texts, LOG)
    name = PLAN if PLAN in texts else UNIT
    yield f"of {name}: {document['says'][0]}"
    yield from document["says"][1:]
    if PLAN in texts:
        plan = read_plan(texts, PLAN)
        premises, means = premises_of_plan(plan), raised_in(plan)
    else:
        unit = parse_unit(texts[UNIT], UNIT)
        premises, means = premises_of(unit.result), raised(unit)
    yield ", ".join([f"where {premises[0]}", *premises[1:], *([means] if "°" in "".join(document["says"]) else [])])
    yield from (_plans if PLAN in texts else _units)(texts, name)


def _claim(texts: Mapping[str, str]) -> Iterator[str]:
    """A claim in the words of its file, and its units."""
    data, claim = read_yaml(texts[CLAIM], CLAIM).data, read_claim(texts)
    some = "some input" if WITNESS in texts else "no input"  # a proof says that no input shows the claim
    says = data.get("claim", claim.text)
    yield f"{data['id']}: for {some if data.get('quantifier', 'all') == 'exists' else 'all inputs'}, {says}"
    known = ("id", "about", "source", "says", "expect", "note", "quantifier", "claim", "maximise")
    for key, value in data.items():
        if key not in known:
            yield f"{key}: {json.dumps(value)}"
    for reference in references(data):
        if HELD.fullmatch(reference):
            own = _plans if reference.endswith(PLAN_END) else _units
            yield from own(texts, reference.removeprefix("./"))
        else:
            yield f"{reference}: {_of_table(reference)}"


def _of_table(reference: str) -> str:
    """A unit of the table that a claim names, with the digest of its text."""
    unit = parse_reference(reference).unit
    return f"{_described(unit)}; SHA-256 of its unit file {_digest(unit_text(unit))}"


_KINDS = {WITNESS: _witness, COVER: _cover, PLANS: _plans_equal, PROPERTY: _property, CLAIM: _claim,
          QUESTION: _question, LOG: _bounds}  # fmt: skip


# -- names


def table_names(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """For each unit file whether the table has this unit under its name, and for each plan file whether a plan of its
    name ships, and is this one; in words."""
    for name in sorted(texts):
        if name in (LEFT, RIGHT, UNIT) or NUMBERED.fullmatch(name):
            unit = parse_unit(texts[name], name)
            called, own = plain_line(unit.reference), named_unit(unit)
            if own is None:
                yield name, f"calls itself {called}, a name that mmaprobe's table of units does not have"
            elif own == unit or parse_unit(unit_text(own), name) == unit:
                yield name, f"is {called} of the table"
            else:
                yield name, f"calls itself {called}, but is NOT the unit of that name"
        elif name.endswith(PLAN_END):
            called = str(read_yaml(texts[name], name).data["plan"])
            if called not in plans():
                yield name, f"calls itself {plain_line(called)}; no plan of this name ships"
            elif _spelled_out(texts, name) == _spelled_out(plan_texts({name: parse_plan_path(called)}), name):
                yield name, f"is the plan {called} that ships"
            else:
                yield name, f"calls itself {called}, but is NOT the plan of that name that ships"


def _spelled_out(texts: Mapping[str, str], name: str) -> dict[str, Any]:
    """The arithmetic of a plan file, with the texts of its units."""
    data = {key: value for key, value in read_yaml(texts[name], name).data.items() if key not in NAMES_OF_PLAN}
    return data | {"units": {unit: texts[file] for unit, file in data["units"].items()}}
