"""The terms of art in help texts and pages, each defined once: `mmaprobe list words` prints them, and `make man`
generates docs/glossary.md from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmaprobe.hypotheses.properties import STATEMENTS, statement_of

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
H = "hopper/mma/m16n8k16.f32.f16.f16.f32"


@dataclass(frozen=True)
class Word:
    """A term, its meaning in a sentence or two, and where it is shown: a command, or a page in docs/, in Markdown."""

    term: str
    meaning: str
    shown: str


def _command(text: str) -> str:
    return f"`mmaprobe {text}`"


#: what `prove --property` takes, and the statement of each
PROPERTIES = {
    **{name: statement_of(name) for name in STATEMENTS},
    "error-bound": "how far the result can be from the exact sum, as a formula and as numbers",
}
#: further sentences about properties, after their statements
ASIDES = {
    "order-independent": "It says nothing of products of different steps, unless each step adds a single product: "
    "then, as in a unit of one step, it is about any two. In a unit with scale factors it is about products with the "
    "same scale factors, which keep their places.",
    "sign-symmetric": "It does not hold where terms are rounded down.",
    "zero-padding": "It is asked of a unit whose length is a parameter (`@length=N`).",
    "exact": "Elsewhere: without any rounding.",
    "unbiased": "It is answered for one result that is rounded by at most six random bits.",
}


def _of_property(name: str, says: str) -> Word:
    sides = f"{V} {H}" if name == "equal" else "drawn.yaml" if name == "unbiased" else V
    told = f"A property of {'two models' if name == 'equal' else 'a model'}: {says}. {ASIDES.get(name, '')}"
    return Word(name, told.rstrip(), _command(f"prove --property {name} {sides}"))


_WORDS = tuple(Word(*row) for row in (
    ("3xTF32, 4xTF32",
     "Products of f32 numbers on a tf32 unit: each factor is split into a large and a small tf32 number, and three "
     "or all four of the cross products are added. 2xFP16 and the like are named in the same way.",
     _command("list claims tf32")),
    ("addend",
     "c in d = c + sum of a_k * b_k: what the products are added to. In a chain of instructions the result of "
     "one is the addend of the next.",
     "[the addend](pictures/addend.svg)"),
    ("admitted input",
     "An input that meets the restrictions of a question (finite, nonnegative, a window of exponents, ...). A "
     "statement is about admitted inputs only.",
     "`--inputs` of " + _command("prove")),
    ("alignment",
     "Before terms are added they are shifted to one exponent, the largest of all terms. Bits shifted out to "
     "the right are truncated.",
     "[truncation](pictures/truncation.svg)"),
    ("architecture",
     "A generation of hardware, the first part of the name of a model: volta, hopper, cdna3, x86. A GPU name "
     "is read as its architecture.",
     _command("list gpus")),
    ("batch invariance",
     "Whether a row of a matrix product has the same bits however many rows are computed with it.",
     _command("identify --gemm --invariant") + " ([batch invariance](batch-invariance.md))"),
    ("bias",
     "An addend of one row, which all rows of a matrix product share, or of one column.",
     "[plans](plans.md)"),
    ("bit pattern",
     "A number as its format stores it, written in hexadecimal digits: 3c00 is 1 in f16.",
     _command("list formats")),
    ("block",
     "The products that one step of an instruction adds together. An instruction of 16 products in blocks of 8 "
     "takes two steps; the rounded result of the first is the addend of the second.",
     "[block](pictures/block.svg)"),
    ("cancellation",
     "Terms of opposite signs take each other's leading bits away, so that lower bits decide the result.",
     _command("list hypotheses cancel")),
    ("candidate",
     "One of the models that a device might implement, as far as is known.",
     _command("list families")),
    ("carry bits",
     "Bits of a fused sum above the largest term. With too few of them a sum of large terms wraps round.",
     "[carry bits](pictures/carry-bits.svg)"),
    ("certificate",
     "A folder with everything needed to check a proof again without mmaprobe's provers: theorems, SMT-LIB "
     "texts, CNF and DRAT files.",
     _command("check FOLDER") + " ([prove](prove.md))"),
    ("chain",
     "Instructions that run one after another on the tiles of K, each result the addend of the next.",
     "[plans](plans.md)"),
    ("claim",
     "A statement about algorithms on units (which of two is more accurate, how large an error can become) "
     "that is verified, or refuted by an input.",
     _command("list claims")),
    ("class",
     "Candidates that give the same result on every input; nothing a device answers can distinguish them.",
     _command("separate nvidia-f16 --json")),
    ("confirmed",
     "Proved again by a solver of another lineage (cross-checked): z3 or cvc5 where bitwuzla answered.",
     "`--confirm` of " + _command("prove")),
    ("cut-point",
     "In a proof: an intermediate result that is replaced by a fresh variable once both sides are known to "
     "agree on it. This over-approximates, so a proof stays valid.",
     _command(f"prove {V} {V}@carry_bits=4 --explain")),
    ("data sheet",
     "What a vendor would publish of a unit: formats, sum, rounding, special values, error bound.",
     _command("datasheet H100 -o h100.html")),
    ("datapath",
     "The steps from operands to result, bit by bit: products, alignment, sum, rounding.",
     _command(f"explain {V} vectors.jsonl")),
    ("device",
     "Anything that answers vectors: a GPU, an instruction of this processor, a program, a Python function, a "
     "recording, or a model.",
     _command("list devices")),
    ("discriminating",
     "An input is discriminating if two hypotheses predict different results on it.",
     _command("distinguish truncation-or-toward-zero")),
    ("dot product",
     "The sum of products a_k * b_k, with an addend; each element of a matrix product is one.",
     _command("list models")),
    ("e8m13",
     "Results of some FP8 instructions: f32 numbers of which only 13 fraction bits are used.",
     _command("list formats")),
    ("engine",
     "A program that decides logical formulas (bitwuzla, z3, cvc5) or propositional ones (CaDiCaL).",
     "`--solver` of " + _command("prove")),
    ("error bound",
     "A proved limit of |d - exact|, as a formula and as numbers.",
     _command(f"prove --property error-bound {H}")),
    ("exercises",
     "Which behaviour of the datapath an input reaches in any step: bits truncated, a carry, a cancellation, a "
     "negative sum, a tie, a rounding up or down, an overflow, a subnormal or zero result, a special value.",
     _command("distinguish truncation-or-toward-zero")),
    ("exponent",
     "The power of two by which a significand is multiplied. A window of exponents restricts the inputs of a question.",
     "`--inputs exponents=-4..4` of " + _command("prove")),
    ("F",
     "The fraction bits kept below the largest exponent when terms are aligned (`fraction_bits`): 23 on Volta, "
     "24 on Ampere, 25 on Hopper.",
     "[F](pictures/fraction-bits.svg)"),
    ("family",
     "Two related uses. A family of candidates is a set of models to choose from (`identify`, `separate`). The "
     "family of a model (`@family=NAME`) is the function that computes its sum.",
     _command("list families") + ", [identify](identify.md)"),
    ("first divergence",
     "The first intermediate result on which two evaluations of one input differ.",
     _command(f"explain {V} vectors.jsonl:1 --against {H}")),
    ("floor",
     "A least value of the largest exponent (`exponent_floor`), which matters where every term is tiny or "
     "zero.",
     _command("list parameters")),
    ("format",
     "How a number is encoded: widths of exponent and fraction, bias, special values.",
     _command("list formats")),
    ("fused",
     "A fused sum adds several terms at once and rounds once, instead of after each addition. In matrix units "
     "the aligned terms are truncated, so a fused sum need not be exact.",
     "[truncation](pictures/truncation.svg)"),
    ("GEMM",
     "A product of whole matrices, D = alpha * A B + beta * C.",
     "[plans](plans.md)"),
    ("hypothesis",
     "A candidate answer to a question about a unit, as a model that predicts results.",
     _command("list hypotheses")),
    ("instruction",
     "One operation of the hardware, such as mma.m16n8k16; every element of its result is one dot product of "
     "fixed length.",
     _command("list models")),
    ("K, length",
     "The number of products of a dot product: of one instruction (`length`), or of a whole matrix product.",
     _command("list models")),
    ("lemma",
     "A statement that one step of a proof needs, decided by an engine or by evaluating all cases.",
     "`--explain` of " + _command("prove")),
    ("minimised",
     "Reduced to as few nonzero terms and as simple numbers as still show the difference.",
     _command(f"compare model:{V} model:{H}")),
    ("model",
     "A description of a unit that gives its results bit for bit, named by a reference.",
     _command("list models")),
    ("neighbour",
     "A model with one parameter changed.",
     _command(f"explain {V} vectors.jsonl:1")),
    ("normal form",
     "The expression that rewriting with proved rules ends in. Two units with the same normal form are equal.",
     "[prove](prove.md)"),
    ("normalised",
     "With its significand shifted so that it is at least 1 and below 2. A product of two significands can "
     "reach 4; whether it is normalised before alignment changes which bits are kept.",
     "[product](pictures/product.svg)"),
    ("parameter",
     "What can be varied in a model, after an @ in its reference: fraction_bits=24.",
     _command("list parameters")),
    ("plan",
     "How a whole matrix product uses a unit: tiles of K in their order, split-K, other accumulators, "
     "epilogue.",
     _command("list plans")),
    ("property",
     f"What can be proved of one unit, or two: {', '.join(PROPERTIES)}.",
     "[prove](prove.md)"),
    ("question",
     "Two or more hypotheses about one unit; also each vector that is put to a device.",
     _command("list hypotheses")),
    ("recording",
     "A file of vectors with the results that a device gave. It can be asked only about those vectors.",
     "`--device recorded:FILE` of " + _command("run")),
    ("reference",
     "The name of a model: arch/unit/instruction, with changed parameters after an @; or the path of a unit "
     "file.",
     f"`{V}@fraction_bits=24`"),
    ("replayed",
     "Evaluated again by another implementation of the model before it is reported.",
     "[distinguish](distinguish.md)"),
    ("row",
     "One line of a vector file; one instruction of the table.",
     _command("list models")),
    ("scale factor",
     "A power of two (or another small number) that multiplies a group of inputs, as in MXFP8 and NVFP4.",
     _command("list models nvf4")),
    ("signal",
     "An intermediate result of an evaluation, with its name: product[1].significand.",
     _command(f"explain {V} vectors.jsonl:1 --json")),
    ("significand",
     "The digits of a floating-point number without sign and exponent: 1.1 (binary) in 1.1 * 2^3. Often called "
     "mantissa.",
     _command(f"explain {V} vectors.jsonl:1")),
    ("solver",
     "An SMT solver: it decides whether an input with given properties exists.",
     "`--solver` of " + _command("distinguish")),
    ("special value",
     "Zero, infinity or NaN: what arithmetic on numbers does not cover.",
     _command("distinguish xie-nan-pattern")),
    ("split-K",
     "K is divided between several accumulators whose sums are added at the end.",
     _command("prove plan:cublas/plain plan:cublas/split-k")),
    ("stage",
     "A part of an evaluation: products, maximum exponent, alignment, sum, rounding.",
     _command(f"explain {V} vectors.jsonl:1")),
    ("sticky bit",
     "One bit that is set if any of the bits shifted out is set; rounding needs to know no more about them.",
     "[parameters](parameters.md)"),
    ("store",
     "A file in which answers of solvers are kept, so that no question is solved twice.",
     "`--store` of " + _command("prove")),
    ("subnormal",
     "A number below the smallest normal one, with fewer significant bits. Some units read or return them as "
     "zero (flushing).",
     "[parameters](parameters.md)"),
    ("summation order",
     "Which terms are added in which step, drawn as a tree.",
     _command(f"order --device model:{V} --formats f16,f16,f32,f32 --length 4")),
    ("tensor core",
     "NVIDIA's name for its matrix unit; AMD's is matrix core.",
     _command("list models H100")),
    ("term",
     "One of the numbers that a step adds: a product, or the addend.",
     _command(f"explain {V} vectors.jsonl:1")),
    ("theorem",
     "A statement that the kernel has accepted: every step is an answer of an engine to a stated question, or "
     "a rule with checked side conditions.",
     "[prove](prove.md)"),
    ("tie",
     "An exact value half way between two numbers of a format: rounding to nearest takes the even one, or the one "
     "away from zero.",
     _command("list hypotheses rounding")),
    ("tile",
     "The part of K that one instruction takes.",
     "[plans](plans.md)"),
    ("tiny",
     "Below the smallest normal number, as the exact value or as a value rounded with an unbounded range of exponents: "
     "an inexact tiny result is an underflow.",
     "[flags](report.md#flags)"),
    ("truncated",
     "Cut off without rounding. Aligned terms are truncated F bits below the largest exponent.",
     "[truncation](pictures/truncation.svg)"),
    ("u",
     "Two uses. In error bounds of units: the place value of the last bit kept, 2^(largest exponent - F). In curves of "
     "studies: the unit roundoff of the result's format, 2^-24 for f32.",
     "[my error](my-error.md)"),
    ("ulp",
     "Unit in the last place: the distance between neighbouring numbers of a format.",
     _command("list studies")),
    ("underflow",
     "A tiny result that is not exact.",
     "[flags](report.md#flags)"),
    ("unit",
     "The hardware (or its model) that computes a dot product: a tensor core, a matrix core, a CPU's matrix "
     "instruction.",
     _command(f"show {H}")),
    ("unit file",
     "A unit written as an expression in YAML. Its path is accepted wherever a model is.",
     "[units](units.md)"),
    ("validation",
     "Further vectors on which the model found must agree with the device before it is named.",
     "[identify](identify.md)"),
    ("vector",
     "One input of a unit: a, b, c and scale factors as bit patterns; with a result it is an answer.",
     "[extending](extending.md)"),
    ("verdict",
     "The answer to a question: different, equal or unknown; holds, refuted or unknown.",
     "[exit codes](README.md#defaults-output-exit-codes)"),
    ("witness",
     "An input that shows a difference or refutes a statement, replayed before it is printed.",
     _command(f"distinguish {V} {V}@carry_bits=2")),
    ("zero padding",
     "Products of +0 added to fill a tile; harmless only if the unit's result does not change.",
     _command(f"prove --property zero-padding {V}")),
))  # fmt: skip
GLOSSARY = tuple(
    sorted((*_WORDS, *(_of_property(*row) for row in PROPERTIES.items())), key=lambda word: word.term.lower())
)


def page() -> str:
    """The glossary page, in Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Glossary"
    yield ""
    yield "The terms of the help texts and of these pages. `mmaprobe list words` prints them, and `mmaprobe list"
    yield "words carry` those that contain a word. `make man` writes this page, from cli/glossary.py."
    yield ""
    # joined here, as in all tables of pages: libraries pad columns, so that one longer cell would change every line
    yield "| term | meaning | shown by |"
    yield "|---|---|---|"
    for word in GLOSSARY:
        yield f"| **{word.term}** | {word.meaning.replace('|', chr(92) + '|')} | {word.shown} |"


if __name__ == "__main__":
    print(page(), end="")
