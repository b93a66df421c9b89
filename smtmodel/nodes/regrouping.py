"""Variants of an expression with the same products and addend in other steps, as in units that add in another order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes.chains import OUTER, ProductChain, chain_of, interleaved_pairs
from mmaprobe.smtmodel.nodes.counting import Counting
from mmaprobe.smtmodel.nodes.element import Constant, Element
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.fused import FusedSum
from mmaprobe.smtmodel.nodes.gate import Gate
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.node import Node, Variant, of_kind, walk
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.repeat import Repeat, Running
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced
from mmaprobe.smtmodel.nodes.round import Round, Rounding

F2 = 31  # fraction bits of the sum of products with a late addend (CDNA3: Xie et al. 2026, Algorithm 10)
MOST_ROUNDED = 32  # the most products of a step for which rounded sums of two terms are tried
PRODUCTS, BEFORE = 0, 1  # where the sum of a step has the products, and the result before


def regrouped(result: Node) -> Iterator[tuple[Variant, Node]]:
    """Variants of an expression, each with its changed expression: with other products in a step, another order of
    products, another place of c, rounded sums of two terms, or rounded products."""
    if after := _parts_of_sum_before_c(result):
        last, chain, c = after
        yield Variant("addend", "after", "fused"), replace(chain, start=c)
        for change, other in _in_other_steps(chain):
            yield change, replace(last, term=ExactSum((other, c)))
    else:
        yield from _addend_with_products(result)
        yield from _in_other_steps(result)
    if not any(isinstance(node, Round) and isinstance(node.term, (Gate, Product)) for node in walk(result)):
        rounding = Rounding(FORMATS["f32"])
        every = list(walk(result))
        around = {node for node in every if isinstance(node, (Gate, Counting)) and isinstance(node.term, Product)}
        products = {node for node in every if isinstance(node, Product)} - {node.term for node in around} | around
        with suppress(ParameterError):  # raised by a node that takes no rounded products
            rounded = rebuilt(result, lambda old, new: Round(new, rounding) if old in products else new, {})
            yield Variant("product", "exact", "rounded_f32"), rounded


def _parts_of_sum_before_c(result: Node) -> tuple[Round, Repeat, Element] | None:
    """The last rounding, the steps and c, if c is added to the finished sum of products; else None."""
    if not (isinstance(result, Round) and isinstance(result.term, ExactSum) and len(result.term.items) == 2):
        return None
    chain, c = result.term.items
    alike = isinstance(chain, Repeat) and isinstance(chain.start, Constant) and isinstance(c, Element)
    return (result, chain, c) if alike and isinstance(chain, Repeat) and isinstance(c, Element) else None


def _in_other_steps(result: Node) -> Iterator[tuple[Variant, Node]]:
    chain = chain_of(result)
    if chain is None:
        return
    size, order = len(chain.blocks[0]), [k for block in chain.blocks for k in block]
    for other in range(len(order), 0, -1):
        if len(order) % other == 0 and other != size:
            blocks = [order[k : k + other] for k in range(0, len(order), other)]
            yield from _variant_if("block", size, other, chain.in_blocks(blocks))
    plain = sorted(order)
    if len(plain) % 4 == 0 and len(chain.blocks) == 2 and order == plain:
        yield from _variant_if(
            "block_order", "contiguous", "interleaved_pairs", chain.in_blocks(interleaved_pairs(plain))
        )
    if order != plain:
        blocks = [plain[k : k + size] for k in range(0, len(plain), size)]
        yield from _variant_if("block_order", "interleaved_pairs", "contiguous", chain.in_blocks(blocks))
    if isinstance(chain.start, Element):
        yield from _variant_if("addend", "fused", "after", _addend_after(chain))
    yield from _variant_if("addend", "fused", "late", _addend_late(chain))
    yield from _variant_if("partials", "unnormalised", "normalised", _rounded_one_by_one(chain))


def _variant_if(name: str, old: object, new: object, result: Node | None) -> Iterator[tuple[Variant, Node]]:
    if result is not None:
        yield Variant(name, old, new), result


def _addend_with_products(result: Node) -> Iterator[tuple[Variant, Node]]:
    """The variants in which a late addend is a term of the sum of products."""
    for node in walk(result):
        inner = node.items[0] if isinstance(node, FusedSum) and len(node.items) == 2 else None
        if isinstance(node, FusedSum) and isinstance(inner, FusedSum):
            whole = _with_operand(inner, node, 1)
            joined = replaced(result, lambda part, old=node, new=whole: new if part == old else None)  # type: ignore[misc]
            yield Variant("addend", "late", "fused"), joined


def _with_operand(inner: FusedSum, outer: FusedSum, position: int) -> FusedSum:
    """The sum `inner` with one more operand, the operand at a position of `outer` with its parameters there. A sum with
    one F for all operands gets a list of F."""
    every = {"fraction_bits": inner.fraction_bits, "floors": inner.floors, "reach": inner.reach}
    changed: dict[str, object] = {"items": (*inner.items, outer.items[position])}
    for name, given in every.items():
        own = outer.value_at(getattr(outer, name), position)
        if isinstance(given, tuple) and (given or own is not None):
            changed[name] = (*(inner.value_at(given, k) for k in range(len(inner.items))), own)
    return replace(inner, **changed)  # type: ignore[arg-type]


def _addend_after(chain: ProductChain) -> Node | None:
    own = next(node.rounding for node in of_kind(chain.step, Round))
    last = Rounding(own.format, "nearest_even", "ieee", own.subnormals, "ieee", own.nan)
    before = chain.in_blocks(chain.blocks, Constant())
    return None if before is None else Round(ExactSum((before, chain.start)), last)


def _sum_of_step(chain: ProductChain) -> ExactSum | FusedSum | None:
    """The sum that a step rounds, if this sum adds the step's products and the result before at once; else None."""
    step = chain.step
    total = step.term if isinstance(step, Round) else None
    plain = isinstance(total, (ExactSum, FusedSum)) and total.items == (chain.terms, Running(OUTER))
    return total if plain and isinstance(total, (ExactSum, FusedSum)) else None


def _addend_late(chain: ProductChain) -> Node | None:
    own = _sum_of_step(chain)
    if not isinstance(own, FusedSum) or not isinstance(own.fraction_bits, int) or own.carry_bits is not None:
        return None
    products = own.of_terms([(PRODUCTS, chain.terms)])
    late = FusedSum((products, Running(OUTER)), (F2, own.fraction_bits), "down", zeros=own.zeros, least=own.least)
    floor, far = own.value_at(own.floors, BEFORE), own.value_at(own.reach, BEFORE)
    late = replace(late, floors=() if floor is None else (None, floor), reach=() if far is None else (None, far))
    step = replaced(chain.step, lambda part: late if part == own else None)
    return replace(chain, step=step).in_blocks(chain.blocks)


def _rounded_one_by_one(chain: ProductChain) -> Node | None:
    own, first = _sum_of_step(chain), chain.blocks[0]
    if own is None or len(first) > MOST_ROUNDED or own.carry_bits is not None:
        return None
    assert isinstance(chain.step, Round)
    loop = ((OUTER, 1),) if len(chain.blocks) > 1 else ()
    terms = [*((PRODUCTS, chain.form(Index(k, loop))) for k in first), (BEFORE, Running(OUTER))]
    so_far: tuple[int, Node] = terms[0]
    for term in terms[1:]:
        so_far = BEFORE, replace(chain.step, term=own.of_terms([so_far, term]))
    running = so_far[1]
    if not loop:
        return replaced(running, lambda part: chain.start if part == Running(OUTER) else None)
    offsets = tuple(block[0] - first[0] for block in chain.blocks)
    return Repeat(OUTER, offsets, chain.start, running)
