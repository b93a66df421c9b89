"""Files mutated at random, from a seed: bytes flipped, deleted, doubled, cut off, taken from other files; numbers of
any size, deep nesting, values of the wrong type at any key."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from tests.places import ROOT

NUMBERS = [
    b"0",
    b"-1",
    b"1e999",
    b"0x1F",
    b"99999999999",
    b"9" * 400,
    b"9" * 5000,
    b"1e-400",
    b"0.5",
    b"-0",
    b".nan",
    b"1_0",
]
WORDS = [
    b"null", b"~", b"[]", b"{}", b"true", b'""', b"*a", b"&a ", b"!!int ", b"!!binary x", b"!!python/object:os.system ",
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\n", b"\n\n", b": ", b"- ", b"? ", b"@",
    b"{from: 0, to: 1000000000}", b"exact", b"none", b"%", b"---\n", b"|\n", b"<<: *a", b"/", b"..", b"NaN",
]  # fmt: skip
VALUES: list[Any] = [
    None, [], {}, "", "x", True, 0, -1, 1, 3, 2**63, 10**30, -(10**30), 0.5, float("nan"), float("inf"), [[]], [None],
    [{}], {"from": 0, "to": 10**9}, {"from": 3, "to": 1}, {"min": -(10**9), "max": 10**9}, {"x": {"y": "z"}},
    "a" * 5000, "@", "volta/mma/m8n8k4.f32.f16.f16.f32@length=1000000000", [0] * 1000,
]  # fmt: skip


def yaml_files() -> list[Path]:
    return sorted((ROOT / "hypotheses").rglob("*.yaml"))


def row_files() -> list[bytes]:
    """A few rows of every kind."""
    published = [path.read_bytes().splitlines()[:4] for path in (ROOT / "hypotheses" / "vectors").glob("*.jsonl")]
    with gzip.open(ROOT / "tests" / "data" / "mma_sim_public.jsonl.gz") as stream:
        golden = stream.read().splitlines()
    return [
        b"\n".join(lines) + b"\n"
        for lines in [*published, *(golden[start : start + 3] for start in range(0, 2000, 99))]
    ]


def matrix_files() -> list[bytes]:
    found = []
    numbers = np.ones((5, 8), np.float16), np.eye(8, dtype=np.float32), np.zeros((2, 3, 4))
    for array in (*numbers, np.arange(40, dtype=np.uint16).reshape(5, 8), np.ones(7, np.int8)):
        stream = io.BytesIO()
        np.save(stream, array)
        found.append(stream.getvalue())
    stream = io.BytesIO()
    np.savez(stream, x=np.ones((4, 4), np.float16))
    return [*found, stream.getvalue()]


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """The content of a file, changed in up to three ways."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        data = rng.choice(WAYS)(data, others, rng)
    return data


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice([1, 2, 8, 40, 400]))


def _flip(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 3])):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _delete(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _double(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice([1, 1, 30]) + data[end:]


def _truncate(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _splice(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others)
    (start, end), (first, last) = _span(data, rng), _span(other, rng)
    return data[:start] + other[first:last] + data[rng.choice([start, end]) :]


def _number(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    places = [k for k, byte in enumerate(data) if 48 <= byte < 58]
    if not places:
        return data
    start = rng.choice(places)
    end = start
    while end < len(data) and 48 <= data[end] < 58:
        end += 1
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def _word(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.choice(WORDS) + data[rng.choice([start, end]) :]


def _nest(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    start, _ = _span(data, rng)
    return (
        data[:start]
        + rng.choice([b"[", b"{a: ", b'{"a":', b"- ", b"(", b"-"]) * rng.choice([3, 300, 20000])
        + data[start:]
    )


def _lines(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


Way = Callable[[bytes, list[bytes], random.Random], bytes]
WAYS: list[Way] = [_flip, _delete, _double, _truncate, _splice, _number, _word, _nest, _lines]


def mistyped(document: Any, rng: random.Random) -> Any:
    """A document with a value of another type at one of its keys, or with that key left out, or misspelt."""
    document = json.loads(json.dumps(document, default=str))
    here = document
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            return rng.choice(VALUES)
        key = rng.choice(keys)
        if isinstance(here[key], dict | list) and here[key] and rng.random() < 0.7:
            here = here[key]
            continue
        if rng.random() < 0.15:
            value = here.pop(key)
            if isinstance(here, dict) and rng.random() < 0.5:
                here[f"{key}x"] = value
        else:
            here[key] = rng.choice(VALUES)
        return document


def mutated_yaml(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated(data, others, rng)
    return yaml.safe_dump(mistyped(yaml.safe_load(data), rng), allow_unicode=True).encode("utf-8", "surrogatepass")


def mutated_rows(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated(data, others, rng)
    rows = [json.loads(line) for line in data.splitlines() if line.strip()]
    rows[rng.randrange(len(rows))] = mistyped(rng.choice(rows), rng)
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
