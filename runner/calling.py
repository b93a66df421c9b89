"""The program that calls a Python function for the device python, in a process of its own: the function may end the
process, block, or print.

Run as `python -P calling.py DESCRIPTOR FILE FUNCTION PATH...` with the parent's import path. The program's first line
of output is a JSON object about the function: `takes`, the number of the function's arguments, or why the function
cannot be called. Each question is a line with the JSON list of the arrays' types, shapes and orders (C or F); the
arrays' bytes, in the order C, are in the unnamed file of DESCRIPTOR. The answer is a line of the same kind for one
array, or a JSON object that says why there is no array.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from numpy.typing import NDArray


AWAITED = "give a function that returns the product itself, as by asyncio.run"


def pack(arrays: Sequence[NDArray[Any]], file: BinaryIO, orders: str = "CCC") -> bytes:
    """Write the bytes of arrays to a file. Returns the line with the arrays' types, shapes and orders."""
    import numpy as np

    file.seek(0)
    for array in arrays:
        left = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        while left:
            left = left[file.write(left) :]
    heads = [(array.dtype.name, array.shape, order) for array, order in zip(arrays, orders, strict=False)]
    return json.dumps(heads).encode() + b"\n"


def unpack(heads: Sequence[Any], file: BinaryIO) -> list[NDArray[Any]]:
    """The arrays with the types, shapes and orders of a line (`heads`), their bytes read from a file."""
    import ml_dtypes  # noqa: F401  (NumPy then knows the names of short formats)
    import numpy as np

    file.seek(0)
    arrays = []
    for name, shape, order in heads:
        array = np.empty(shape, np.dtype(name))
        left = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        while left and (count := file.readinto(left)):  # type: ignore[attr-defined]
            left = left[count:]
        arrays.append(array if order == "C" else laid(array, order))
    return arrays


def laid(array: NDArray[Any], order: Any) -> NDArray[Any]:
    """A copy of an array in an order (C or F), with the strides of this order even for a single row or column."""
    import numpy as np

    copy = np.empty(array.shape, array.dtype, order)
    copy[...] = array
    return copy


def can_take(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with `count` arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call of the function returns a coroutine or an asynchronous generator, not the product."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def load(file: str, name: str) -> tuple[Callable[..., Any] | None, dict[str, Any]]:
    """The function `name` of a file (None if it cannot be called), and the JSON object about the function for the
    parent. The file's folder is the last on the import path."""
    sys.dont_write_bytecode = True
    sys.path.append(os.path.dirname(os.path.abspath(file)))
    loader = SourceFileLoader("mmaprobe_device", file)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
    except BaseException as error:
        from mmaprobe.runner.foreign import in_words

        below = '; what ends a script stands below `if __name__ == "__main__":`'
        return None, {"error": in_words(error) + (below if isinstance(error, SystemExit) else "")}
    functions = [key for key, value in vars(module).items() if callable(value)]
    if name not in functions:
        return None, {"functions": functions}
    function = getattr(module, name)
    if is_async(function):
        return None, {"async": True}
    return function, {"takes": next((count for count in (3, 2) if can_take(function, count)), 0)}


def numbers_of(result: Any) -> NDArray[Any]:
    """A function's result as an array. Raises ValueError for elements without a value, TypeError for a coroutine."""
    import numpy as np

    from mmaprobe.smtmodel.evaluate.numbers import array_from

    if inspect.iscoroutine(result):
        result.close()  # Python would warn of a coroutine that nobody awaits
        raise TypeError(f"its result is a coroutine: {AWAITED}")
    if np.ma.is_masked(result):
        raise ValueError("some elements of its result are masked: they have no value")
    return array_from(result)


def answer(function: Callable[..., Any], heads: Sequence[Any], file: BinaryIO) -> bytes:
    """The line that answers a question: the head of the product, or a JSON object that says why there is none."""
    from mmaprobe.runner.foreign import in_words

    try:
        result = numbers_of(function(*unpack(heads, file)))
        if result.dtype != object and result.dtype.kind not in "SUmM" and not result.dtype.name.startswith("void"):
            if not result.dtype.isnative:
                order = "numbers in this machine's order of bytes are wanted"
                return json.dumps({"error": f"the product has elements of {result.dtype}: {order}"}).encode() + b"\n"
            return pack([result], file)
        kind = type(result.flat[0]).__name__ if result.size else result.dtype.name
        return json.dumps({"object": kind}).encode() + b"\n"
    except BaseException as error:
        return json.dumps({"error": in_words(error)}).encode() + b"\n"


def main() -> None:
    descriptor, file, name, *path = sys.argv[1:]
    sys.path[:] = path
    sys.argv[:] = [file]
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # the function's prints go to standard error
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    faulthandler.enable(2)  # names the line in which a library ends the process
    function, about = load(file, name)
    sink.write(json.dumps(about).encode() + b"\n")
    if function is not None:
        with open(int(descriptor), "r+b", buffering=0) as data:
            while question := source.readline():
                sink.write(answer(function, json.loads(question), data))
    os._exit(0)  # the function's threads may still run


if __name__ == "__main__":
    main()
