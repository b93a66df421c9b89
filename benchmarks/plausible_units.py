"""Units that nobody here has a row for, as processors, open hardware and libraries have them: dot products rounded to
odd or in any direction, results in short formats, two-level trees, exact sums, terms aligned at the largest exponent,
lengths from 2 to 1024; and some with a defect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit

E, Z = "round(f32, nearest_even)", "round(f32, toward_zero)"
Steps = Mapping[str, str]


def plausible() -> Iterator[Unit]:
    """The units."""
    yield from _chains()
    yield from _trees()
    yield from _at_once()
    yield from _defects()


def _chains() -> Iterator[Unit]:
    one = "r(exact(acc, a[k] * b[k]))"
    yield _unit("down-chain6", "f16", "f32", 6, {"d": f"repeat(k in range(6), c, {one})"}, {"r": "round(f32, down)"})
    yield _unit("bf16-out3", "f16", "bf16", 3, {"d": f"q(repeat(k in range(3), c, {one}))"},
                {"r": E, "q": "round(bf16, nearest_even)"}, c="f32")  # fmt: skip
    yield _unit("bf16-acc5", "bf16", "bf16", 5, {"d": f"repeat(k in range(5), c, {one})"},
                {"r": "round(bf16, nearest_even)"})  # fmt: skip
    yield _unit("ftz-chain16", "f32", "f32", 16, {"d": f"repeat(k in range(16), c, {one})"},
                {"r": "round(f32, nearest_even, subnormals=flush_after)"}, inputs="zero")  # fmt: skip
    yield _unit("f16xf64", "f16", "f64", 4, {"d": f"repeat(k in range(4), c, {one})"},
                {"r": "round(f64, nearest_even)"})  # fmt: skip
    yield _unit("fma-rev6", "f64", "f64", 6, {"d": f"repeat(k in range(5, -1, -1), c, {one})"},
                {"r": "round(f64, nearest_even)"})  # fmt: skip
    yield _unit("muladd-chain3-away", "f32", "f32", 3, {"d": "repeat(k in range(3), c, r(exact(acc, r(a[k] * b[k]))))"},
                {"r": "round(f32, nearest_away)"})  # fmt: skip
    yield _unit("f16-wide-in-f32", "f16", "f16", 8, {"d": f"q(exact(repeat(k in range(8), +0, {one}), c))"},
                {"r": E, "q": "round(f16, nearest_even)"})  # fmt: skip
    yield _unit("tpu128", "bf16", "f32", 128, {"d": f"r(exact(repeat(k in range(128), +0, {one}), c))"}, {"r": E})
    lanes = {f"l{i}": f"repeat(k in range({i}, 1024, 8), +0, {one})" for i in range(8)}
    halves = {f"m{i}": f"r(exact(l{i}, l{i + 4}))" for i in range(4)}
    rest = {"n": "r(exact(m0, m2))", "o": "r(exact(m1, m3))", "d": "r(exact(r(exact(n, o)), c))"}
    yield _unit("lanes8-1024", "f32", "f32", 1024, {**lanes, **halves, **rest}, {"r": E})


def _trees() -> Iterator[Unit]:
    pairs = {"x": "o(exact(a[0] * b[0], a[1] * b[1]))", "y": "o(exact(a[2] * b[2], a[3] * b[3]))"}
    yield _unit("odd-tree4", "bf16", "f32", 4, {**pairs, "d": "o(exact(c, o(exact(x, y))))"},
                {"o": "round(f32, to_odd)"})  # fmt: skip
    sums = {f"p{i}": f"r(exact(r(a[{2 * i}] * b[{2 * i}]), r(a[{2 * i + 1}] * b[{2 * i + 1}])))" for i in range(4)}
    yield _unit("dpps", "f32", "f32", 4, {"p0": sums["p0"], "p1": sums["p1"], "d": "r(exact(c, r(exact(p0, p1))))"},
                {"r": E})  # fmt: skip
    yield _unit("mul-tree8", "f16", "f16", 8,
                {**sums, "d": "r(exact(c, r(exact(r(exact(p0, p1)), r(exact(p2, p3))))))"},
                {"r": "round(f16, nearest_even)"})  # fmt: skip
    groups = {f"g{i}": f"r(fused(a[{4 * i}:{4 * i + 4}] * b[{4 * i}:{4 * i + 4}], F=24))" for i in range(4)}
    yield _unit("two-level-up", "f16", "f32", 16,
                {**groups, "d": "r(exact(c, r(exact(r(exact(g0, g1)), r(exact(g2, g3))))))"},
                {"r": "round(f32, up)"})  # fmt: skip
    yield _unit("f16-pair-ftz", "f16", "f16", 2, {"d": "r(exact(c, r(exact(r(a[0] * b[0]), r(a[1] * b[1])))))"},
                {"r": "round(f16, nearest_even, subnormals=flush_before)"}, inputs="zero")  # fmt: skip
    yield _unit("odd-blocks-bf16out", "bf16", "bf16", 32,
                {"s": "repeat(k in range(0, 32, 2), +0, o(exact(acc, o(exact(a[k] * b[k], a[k + 1] * b[k + 1])))))",
                 "d": "q(exact(s, c))"},
                {"o": "round(f32, to_odd, subnormals=flush_before)", "q": "round(bf16, nearest_even)"},
                c="f32", inputs="zero")  # fmt: skip


def _at_once() -> Iterator[Unit]:
    for name, factor, d, length in (("kulisch12", "f16", "f32", 12), ("kulisch48-bf16", "bf16", "bf16", 48),
                                    ("kulisch-e4m3-128", "e4m3", "f32", 128), ("exsdotp", "f16", "f32", 2),
                                    ("exsdotp8", "e5m2", "f16", 2)):  # fmt: skip
        yield _unit(name, factor, d, length, {"d": f"r(exact(a[0:{length}] * b[0:{length}], c))"},
                    {"r": f"round({d}, nearest_even)"})  # fmt: skip
    yield _unit("exsdotp-chain16", "e4m3", "f16", 16,
                {"d": "repeat(k in range(0, 16, 2), c, r(exact(a[k] * b[k], a[k + 1] * b[k + 1], acc)))"},
                {"r": "round(f16, nearest_even)"})  # fmt: skip
    yield _unit("sat-e4m3", "e4m3", "e4m3", 8, {"d": "r(exact(a[0:8] * b[0:8], c))"},
                {"r": "round(e4m3, nearest_even, overflow=saturate)"})  # fmt: skip
    for name, factor, d, length in (("fp8-fdot4", "e4m3", "f32", 4), ("fp8-fdot2-f16", "e5m2", "f16", 2)):
        yield _unit(name, factor, d, length, {"d": f"r(exact(c, r(exact(a[0:{length}] * b[0:{length}]))))"},
                    {"r": f"round({d}, nearest_even)"})  # fmt: skip
    yield _unit("bf16-wide-out-128", "bf16", "bf16", 128,
                {"s": "repeat(k in range(0, 128, 8), +0, r(exact(acc, r(exact(a[k:k + 8] * b[k:k + 8])))))",
                 "d": "q(exact(s, c))"}, {"r": E, "q": "round(bf16, nearest_even)"})  # fmt: skip
    yield _unit("fused3", "bf16", "f32", 3, {"d": "z(fused(a[0:3] * b[0:3], c, F=31))"}, {"z": Z})
    yield _unit("align-ne-5", "bf16", "f32", 5, {"d": "r(fused(a[0:5] * b[0:5], c, F=27, rounding=nearest_even))"},
                {"r": E})  # fmt: skip
    yield _unit("sticky-8", "f16", "f32", 8, {"d": "r(fused(a[0:8] * b[0:8], c, F=26, sticky=true))"}, {"r": E})
    yield _unit("fused96-late", "f16", "f32", 96, {"d": "r(exact(z(fused(a[0:96] * b[0:96], F=25)), c))"},
                {"z": Z, "r": E})  # fmt: skip
    yield _unit("fused-blocks64", "bf16", "f32", 64,
                {"d": "repeat(k in range(0, 64, 16), c, r(exact(acc, z(fused(a[k:k + 16] * b[k:k + 16], F=30)))))"},
                {"z": Z, "r": E})  # fmt: skip
    yield _unit("fused-blocks128", "e5m2", "f32", 128,
                {"d": "repeat(k in range(0, 128, 32), c, z(fused(a[k:k + 32] * b[k:k + 32], acc, F=13)))"},
                {"z": Z})  # fmt: skip


def _defects() -> Iterator[Unit]:
    positive = {"z": "round(f32, toward_zero, zero=positive)"}
    yield _unit("lane-short32", "f16", "f32", 32,
                {"d": "z(fused(a[0:19] * b[0:19], a[19] * b[19], a[20:32] * b[20:32], c, F=[25, 24, 25, 25]))"},
                positive)  # fmt: skip
    yield _unit("carry-short8", "f16", "f32", 8, {"d": "z(fused(a[0:8] * b[0:8], c, F=24, carry=3, zeros=-132))"},
                positive)  # fmt: skip
    yield _unit("sticky-lost4", "f16", "f32", 4,
                {"d": "repeat(k in range(4), c, r(cut(exact(acc, a[k] * b[k]), 26, toward_zero)))"},
                {"r": E})  # fmt: skip
    tiles = [0, 4, 12, 8, *range(16, 64, 4)]
    yield _unit("tile-swapped64", "f16", "f32", 64,
                {"d": f"repeat(k in {tiles}, c, z(fused(a[k:k + 4] * b[k:k + 4], acc, F=23)))"}, {"z": Z})  # fmt: skip
    order = [*range(26), 27, 26, *range(28, 64)]
    yield _unit("products-swapped64", "f32", "f32", 64,
                {"d": f"repeat(k in {order}, c, r(exact(acc, a[k] * b[k])))"}, {"r": E})  # fmt: skip


def _unit(
    name: str, factor: str, d: str, length: int, steps: Steps, roundings: Steps, c: str = "", inputs: str = "keep"
) -> Unit:
    lines = [f"unit: {name}", f"formats: {{a: {factor}, b: {factor}, c: {c or d}, d: {d}}}", f"length: {length}"]
    lines += [f"inputs: {{subnormals: {inputs}}}"] if inputs != "keep" else []
    for key, rows in (("roundings", roundings), ("steps", steps)):
        lines += [f"{key}:", *(f'  {own}: "{text}"' for own, text in rows.items())]
    return parse_unit("\n".join(lines), f"{name}.yaml")
