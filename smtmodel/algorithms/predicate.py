"""The language of claims: a part of Python's expressions, parsed from text to tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from fractions import Fraction
from math import isfinite, lcm

from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.wording import counted, shortened

#: function -> the number of its arguments
FUNCTIONS = {
    "error": 1,  # |result of a part - exact sum|
    "value": 1,  # a part's result or an input as a number
    "exact": 0,  # c + sum of a_k * b_k without rounding
    "magnitude_sum": 0,  # |c| + sum of |a_k * b_k|
    "terms": 0,  # the number of products
    "top": 0,  # 2^e for the largest exponent e of a product (the sum of its factors') or of c; 0 if all are zero
    "ulp": 1,  # the unit in the last place (results' format) at a number, a part's result or an input; 0 at zero
    "distance": 2,  # the number of steps from one result to the other through the numbers of their format
    "bits": 1,  # a pattern as an unsigned integer, of any result
    "finite": 1,  # neither infinite nor NaN, of any result
    "zero": 1,  # a number, or every number of a side, is zero
    "nonzero": 1,  # a number, or every number of a side, is not zero
    "nonnegative": 1,  # the sign bit of a number, or of every number of a side, is not set
    "fits": 2,  # a number, or every number of a side, has no more fraction bits than a format
    "lacks": 2,  # a number, or every number of a side, is zero or has more fraction bits than a format
    "abs": 1,  # the magnitude of a quantity
    "max": 2,  # the larger of two quantities
}
CONSTANTS = (
    "constants are whole numbers, decimals of at most 15 digits, also as 2.5e-3, and powers of two, as 1.25 * 2**-20"
)
#: Python's float of 15 digits is printed with the same digits, within the exponents of its normal numbers
DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
MOST_LEVELS = 50  # the most levels of nested expressions
MOST_DIGITS = 1 << 14  # the most bits of a power of constants
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Pow)


def parse_predicate(text: str, names: Iterable[str]) -> ast.expr:
    """The tree of an expression over `names` (parts, inputs, formats). Raises ParameterError for a text outside the
    language, UnknownNameError for unknown names."""
    known = set(names)
    shown = shortened(text)
    if "#" in text:
        raise ParameterError(shown, "a comment within an expression would seem to be part of it")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ParameterError(shown, f"not an expression: {getattr(error, 'msg', error)}") from None
    except (RecursionError, MemoryError):  # Python's parser raises MemoryError
        raise ParameterError(shown, "not an expression: nested too deep") from None
    if _levels(tree) > MOST_LEVELS:
        raise ParameterError(shown, "not an expression: nested too deep")
    _check(tree, known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            written = ast.get_source_segment(text.strip(), node) or ""
            exact = DECIMAL.fullmatch(written) and isfinite(node.value)
            if not exact or decimal_of(node) != Fraction(written):
                raise ParameterError(written, f"no part of the language of claims (docs/claims.md): {CONSTANTS}")
    return tree


def decimal_of(node: ast.Constant) -> Fraction:
    """The exact value of a constant in an expression: 1.1 is eleven tenths, 1e-4 one ten-thousandth."""
    return Fraction(node.value if isinstance(node.value, int) else repr(node.value))


def without_decimals(tree: ast.expr) -> tuple[ast.expr, int]:
    """An expression without decimals that equals `tree` times an integer factor, and this factor. Both sides of a
    comparison are multiplied by the factor, so that no decimal is rounded."""
    match tree:
        case ast.Constant(value=float()):
            exact = decimal_of(tree)
            return ast.Constant(exact.numerator), exact.denominator
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            own, times = without_decimals(inner)
            return ast.UnaryOp(ast.USub(), own), times
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            (one, times), (two, more) = without_decimals(left), without_decimals(right)
            return ast.BinOp(one, ast.Mult(), two), times * more
        case ast.BinOp(op=ast.Add() | ast.Sub() as op, left=left, right=right):
            (one, two), times = _alike(left, right)
            return ast.BinOp(one, op, two), times
        case ast.Compare(left=left, ops=ops, comparators=others):
            (one, *rest), times = _alike(left, *others)
            return ast.Compare(one, ops, rest), times
    return tree, 1


def _alike(*trees: ast.expr) -> tuple[list[ast.expr], int]:
    """The expressions multiplied by one common factor, without decimals; and the factor."""
    multiplied = [without_decimals(tree) for tree in trees]
    times = lcm(*(factor for _, factor in multiplied))
    return [tree if factor == times else ast.BinOp(ast.Constant(times // factor), ast.Mult(), tree)
            for tree, factor in multiplied], times  # fmt: skip


def power_of(base: Fraction, exponent: Fraction, tree: ast.expr) -> Fraction:
    """The power of a constant. `tree`: the power's expression, for messages. Raises ParameterError for a fractional
    exponent, a negative power of 0, or a power of too many bits."""
    if exponent.denominator != 1 or (not base and exponent < 0):
        raise ParameterError(ast.unparse(tree), "a power of constants is needed")
    digits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if digits * abs(exponent) > MOST_DIGITS:
        raise ParameterError(shortened(ast.unparse(tree)), f"a number of more than {MOST_DIGITS} bits")
    return Fraction(base ** int(exponent))


def _levels(tree: ast.AST) -> int:
    levels, nodes = 0, [tree]
    while nodes:
        levels, nodes = levels + 1, [child for node in nodes for child in ast.iter_child_nodes(node)]
    return levels


def _check(node: ast.expr, names: set[str]) -> None:
    if isinstance(node, ast.Call):
        _check_call(node, names)
        return
    inner: list[ast.expr] = []
    if isinstance(node, ast.BoolOp):
        inner = node.values
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        inner = [node.operand]
    elif isinstance(node, ast.Compare) and all(isinstance(op, _COMPARISONS) for op in node.ops):
        inner = [node.left, *node.comparators]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        inner = [node.left, node.right]
    elif isinstance(node, ast.Subscript):
        inner = [node.value, node.slice]
    elif isinstance(node, ast.Name):
        if node.id not in names:
            raise UnknownNameError("name", node.id, {*names, *FUNCTIONS})
    elif isinstance(node, ast.BinOp):
        raise ParameterError(ast.unparse(node), f"no part of the language of claims (docs/claims.md): {CONSTANTS}")
    elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
        raise ParameterError(ast.unparse(node), "no part of the language of claims (docs/claims.md)")
    for part in inner:
        _check(part, names)


def _check_call(node: ast.Call, names: set[str]) -> None:
    if not isinstance(node.func, ast.Name) or node.keywords:
        raise ParameterError(ast.unparse(node), "functions are called as name(argument, ...)")
    name = node.func.id
    if name not in FUNCTIONS:
        raise UnknownNameError("function", name, FUNCTIONS)
    if len(node.args) != FUNCTIONS[name]:
        raise ParameterError(ast.unparse(node), f"{name} takes {counted(FUNCTIONS[name], 'argument')}")
    for part in node.args:
        _check(part, names)
