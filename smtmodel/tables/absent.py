"""Why some existing instructions are not in the table."""

from __future__ import annotations

import re

_INTEGER = "of integer instructions some are modelled: `mmaprobe list models` shows those with int8 inputs"
_SPARSE = "of sparse instructions `mmaprobe list models` shows those that are modelled, mma_sp, wgmma_sp and smfmac"
_ABSENT = (
    (re.compile(r".*[._](s8|u8|s4|u4|b1|s32|i8|i32)\b.*|.*/i32_.*|.*\d+i8(_.*)?"), _INTEGER),
    (re.compile(r".*/(mma_sp|wgmma_sp|tcgen05mma_sp|mma\.sp)/.*|.*smfmac.*|.*[._]sp[._].*"), _SPARSE),
    (
        re.compile(r"(ampere|ada-lovelace|hopper|blackwell|rtx-blackwell)/mma/m8n8k4\.f(16|32)\..*"),
        "m8n8k4 with f16 runs on the tensor cores of Volta and Turing alone; from Ampere on it is done by ordinary "
        "multiply-adds",
    ),
    (
        re.compile(r"ada-lovelace/wgmma/.*|(blackwell|rtx-blackwell)/wgmma/.*"),
        "this architecture has no wgmma: it is Hopper's alone",
    ),
    (re.compile(r"cdna4/.*"), "no published model of this architecture is known"),
    (
        re.compile(r"rdna[\d.]+/wmma/.*|gfx1[12]\d+/.*"),
        "of RDNA's matrix instructions those of f16 and bf16 are modelled (rdna3, rdna3.5, rdna4); how FP8 is added is "
        "not published",
    ),
)


def not_modelled(reference: str) -> str | None:
    """Why an instruction that exists is not in the table; None for a reference without a known reason."""
    return next((reason for pattern, reason in _ABSENT if pattern.fullmatch(reference)), None)
