"""`with emulate(...)`: matrix products of what runs inside are computed as a machine does.

A dispatch mode sees the operators below autograd, so that gradients are products like others. Operators that consist of
others are taken apart first. What multiplies matrices and is not known here is an error, or native by choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mmaprobe.documents.emulate import Emulated, EmulatedProduct
from mmaprobe.machines import Asked, Machine, UnsupportedProductError, machine_of
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.base.errors import IncompleteError, UnknownNameError
from mmaprobe.torch import convolution
from mmaprobe.torch.products import product
from mmaprobe.torch.tensors import FORMAT_OF, format_of

Unknown = Literal["error", "native"]

#: words of operators that multiply matrices, in one way or another
_WORDS = (
    r"\w*mm|mv|addmv|dot|vdot|matmul|gemm|conv[123]?d?|convolution|linear|lstm|gru|rnn|attention|cdist|pdist|euclidean|"
    r"trilinear|inverse|inv|pinv|pinverse|cholesky|lu|ldl|solve|lstsq|qr|svd|svdvals|eig|eigh|eigvals|eigvalsh|geqrf|"
    r"orgqr|ormqr|det|slogdet|logdet|householder|matrix|fft|fft2|fftn|ifft|rfft|c2c|c2r|r2c|tensorsolve|tensorinv|"
    r"corrcoef|cov|transformer|multi_head|combination|triangular|spsolve|tridiagonal"
)
_MULTIPLIES = re.compile(rf"(?:.*_)?(?:{_WORDS})(?:_.*)?")
_DO_NOT = re.compile(r"\w*(slice_inverse|(batch|layer|group|instance|rms)_norm\w*|_fftfreq|matrix_norm|_check_errors)")
_SPACES = ("aten", "prim", "prims", "profiler", "mmaprobe")  # namespaces of operators whose names say what they do

Multiply = Callable[[Any, Any, Any, float, float, str | None, bool], Any]


@dataclass(frozen=True)
class Seen:
    """A product that was computed: what a listener of `Emulation` is told."""

    operator: str
    backward: bool
    asked: Asked
    shape: tuple[int, int, int, int]
    plans: tuple[str, ...]
    a: Any
    b: Any
    c: Any
    d: Any


class Emulation(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """What `emulate` returns: a context. `report`: which plan stood for which product so far, what was native, as a
    value; `str()` of the context shows it as a table."""

    def __init__(
        self, machine: Machine, unknown: Unknown = "error", backward: Literal["emulated", "native"] = "emulated",
        listener: Callable[[Seen], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.machine, self.unknown, self.backward, self._listener = machine, unknown, backward, listener
        self._products: Counter[tuple[Any, ...]] = Counter()
        self._native: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._settings: list[ExitStack] = []

    # -- the context

    def __enter__(self) -> Any:
        settings = ExitStack()
        settings.enter_context(_plain_attention())
        settings.enter_context(_without_onednn())
        settings.enter_context(torch.compiler.set_stance("force_eager"))  # compiled code dispatches no products
        self._settings.append(settings)
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            return super().__exit__(*error)
        finally:
            self._settings.pop().close()

    @property
    def report(self) -> Emulated:
        """Which plan computed each matrix product, and which operators PyTorch itself computed."""
        products = []
        for (operator, backward, formats, shape, plans, known, evidence, after), count in self._products.items():
            products.append(EmulatedProduct(
                operator=operator, backward=backward, formats=formats, shape=shape, count=count, plans=plans,
                known=known, evidence=evidence, after=after,
            ))  # fmt: skip
        return Emulated(
            machine=self.machine.name, framework=f"PyTorch {torch.__version__}", products=products,
            native=dict(self._native), unknown=dict(self._unknown),
        )  # fmt: skip

    def __str__(self) -> str:
        from mmaprobe.reports.emulated import emulated_lines

        return "\n".join(emulated_lines(self.report))

    # -- operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "aten" and not _hidden(args, kwargs):
            known = _OPERATORS.get(func.overloadpacket._qualified_op_name.partition("::")[2].rstrip("_"))
            given = _bound(func, args, kwargs)
            if known is not None and _of_numbers(given):
                return self._known(func, known, given, args, kwargs)
            if _composite(func):
                with self:
                    return func.decompose(*args, **kwargs)
        return self._other(func, args, kwargs)

    def _known(self, func: Any, known: Any, given: dict[str, Any], args: Any, kwargs: Any) -> Any:
        backward = torch._C._current_autograd_node() is not None
        name = str(func.overloadpacket)
        if backward and self.backward == "native":
            self._native[f"{name} (gradient)"] += 1
            return _native(func, args, kwargs)

        def multiply(a: Any, b: Any, c: Any, alpha: float, beta: float, d: str | None, fast: bool) -> Any:
            return self._multiplied(name, backward, a, b, c, alpha, beta, d, fast)

        try:
            found = known(multiply, given)
        except (UnsupportedProductError, IncompleteError) as error:
            if self.unknown == "error":
                hint = "; unknown='native' computes such products as they are"
                raise type(error)(f"{name}: {error}{hint}") from None
            self._unknown[name] += 1
            return _native(func, args, kwargs)
        if func._schema.name.endswith("_"):
            return args[0].copy_(found)
        if (out := given.get("out")) is not None:
            if out.shape != found.shape:
                out.resize_(found.shape)
            return out.copy_(found)
        return found

    def _multiplied(
        self, name: str, backward: bool, a: Any, b: Any, c: Any, alpha: float, beta: float, d: str | None, fast: bool
    ) -> Any:
        asked = Asked(format_of("a", a), format_of("b", b), d or format_of("a", a), alpha, beta, fast)
        shape = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
        rule = self.machine.rule(asked.a, asked.b, addend=c is not None, fast=fast)
        plans = () if 0 in shape else rule.plans_of(Shape(*shape[1:]))
        found, after = product(self.machine, asked, a, b, c)
        key = (name, backward, (asked.a, asked.b, asked.d), shape, plans, *rule.known_for(name, shape), after)
        self._products[key] += 1
        if self._listener is not None:
            self._listener(Seen(name, backward, asked, shape, plans, a, b, c, found))
        return found

    def _other(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = str(func.overloadpacket)
        if not _hidden(args, kwargs) and multiplies(func.namespace, func._schema.name.partition("::")[2]):
            if not _of_integers(args, kwargs):
                if self.unknown == "error":
                    raise UnsupportedProductError(
                        f"{name} may multiply matrices and is not emulated; unknown='native' computes it as it is"
                    )
                self._unknown[name] += 1
                return _native(func, args, kwargs)
            name = f"{name} (integers)"
        self._native[name] += 1
        return _native(func, args, kwargs)


def multiplies(namespace: str, name: str) -> bool:
    """Whether an operator may multiply matrices, by its name: one of a library of one's own may do anything."""
    if namespace not in _SPACES:
        return True
    return namespace == "aten" and bool(_MULTIPLIES.fullmatch(name)) and not _DO_NOT.fullmatch(name)


def _composite(func: Any) -> bool:
    """Whether an operator consists of others, by PyTorch's own definition."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def _flat(args: Any, kwargs: Any) -> Iterator[Any]:
    for one in (*args, *kwargs.values()):
        if isinstance(one, (list, tuple)):
            yield from (x for x in one if isinstance(x, torch.Tensor))
        elif isinstance(one, torch.Tensor):
            yield one


def _hidden(args: Any, kwargs: Any) -> bool:
    """Whether tensors have no numbers: those of torch.compile and of the device meta."""
    fake = torch._subclasses.fake_tensor.FakeTensor
    return any(isinstance(x, fake) or x.device.type == "meta" for x in _flat(args, kwargs))


def _of_numbers(given: Mapping[str, Any]) -> bool:
    return not _of_integers((), given)


def _of_integers(args: Any, kwargs: Any) -> bool:
    tensors = list(_flat(args, kwargs))
    return bool(tensors) and not any(x.is_floating_point() or x.is_complex() for x in tensors)


def _bound(func: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operator by name, with its defaults."""
    found = {}
    for place, argument in enumerate(func._schema.arguments):
        if place < len(args):
            found[argument.name] = args[place]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        elif argument.has_default_value():
            found[argument.name] = argument.default_value
    return found


_OUTSIDE: list[bool] = []  # whether oneDNN was enabled before each context that is open


@contextmanager
def _without_onednn() -> Iterator[None]:
    """Recurrent layers as products and sums of their steps, not as one operator of oneDNN."""
    _OUTSIDE.append(torch._C._get_mkldnn_enabled())
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(_OUTSIDE.pop())


def _native(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator as PyTorch computes it outside of all contexts; oneDNN computes it where it would."""
    torch._C._set_mkldnn_enabled(_OUTSIDE[0])
    try:
        return func(*args, **kwargs)
    finally:
        torch._C._set_mkldnn_enabled(False)


@contextmanager
def _plain_attention() -> Iterator[None]:
    """Attention as products, a softmax and products, which keep the type of its inputs."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    flag = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(flag)
        torch.backends.mha.set_fastpath_enabled(fast)


# -- operators that are products


def _out(given: Mapping[str, Any]) -> str | None:
    kind = given.get("out_dtype")
    return None if kind is None else FORMAT_OF[kind]


def _mm(multiply: Multiply, given: Mapping[str, Any]) -> Any:
    a, b = given["self"], given["mat2"]
    if a.dim() == 2:
        return multiply(a[None], b[None], None, 1.0, 1.0, _out(given), False)[0]
    return multiply(a, b, None, 1.0, 1.0, _out(given), False)


def _addmm(multiply: Multiply, given: Mapping[str, Any]) -> Any:
    two = "mat1" in given
    a, b = (given["mat1"], given["mat2"]) if two else (given["batch1"], given["batch2"])
    beta = float(given["beta"])
    c = None if beta == 0 else given["self"]
    found = multiply(a[None] if two else a, b[None] if two else b, c, float(given["alpha"]), beta, _out(given), False)
    return found[0] if two else found


def _mv(multiply: Multiply, given: Mapping[str, Any]) -> Any:
    return multiply(given["self"][None], given["vec"][None, :, None], None, 1.0, 1.0, None, False)[0, :, 0]


def _addmv(multiply: Multiply, given: Mapping[str, Any]) -> Any:
    beta = float(given["beta"])
    c = None if beta == 0 else given["self"][..., None]
    a, b = given["mat"][None], given["vec"][None, :, None]
    return multiply(a, b, c, float(given["alpha"]), beta, None, False)[0, :, 0]


def _dot(multiply: Multiply, given: Mapping[str, Any]) -> Any:
    a, b = given["self"], given.get("tensor", given.get("other"))
    return multiply(a[None, None], b[None, :, None], None, 1.0, 1.0, None, False)[0, 0, 0]


def _scaled(multiply: Multiply, given: Mapping[str, Any]) -> Any:
    """FP8 with f32 scale factors of whole matrices, or of rows of A and columns of B: the sum times both, in f32."""
    one, other = given["scale_a"], given["scale_b"]
    if one.dtype != torch.float32 or other.dtype != torch.float32:
        raise UnsupportedProductError("scale factors of blocks are for mmaprobe.torch.scaled_mm, with a unit for them")
    if one.numel() not in (1, given["self"].shape[0]) or other.numel() not in (1, given["mat2"].shape[1]):
        raise UnsupportedProductError("scale factors are one, or one for each row of A and column of B")
    a, b = given["self"][None], given["mat2"][None]
    kind = given.get("out_dtype") or torch.bfloat16
    sums = multiply(a, b, None, 1.0, 1.0, "f32", bool(given.get("use_fast_accum")))[0]
    factor = one.reshape(-1, 1) if one.numel() > 1 else one.reshape(1, 1)
    sums = sums * (factor * other.reshape(1, -1))
    if given.get("bias") is not None:
        sums = sums + given["bias"].float()
    return sums.to(kind)


_OPERATORS: dict[str, Callable[[Multiply, Mapping[str, Any]], Any]] = {
    "mm": _mm,
    "bmm": _mm,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "mv": _mv,
    "addmv": _addmv,
    "dot": _dot,
    "vdot": _dot,
    "_scaled_mm": _scaled,
    "convolution": convolution.forward,
    "convolution_backward": convolution.backward,
}


def emulate(
    machine: Any = None, *, unit: Any = None, plan: Any = None, convert: str | None = None,
    unknown: Unknown = "error", backward: Literal["emulated", "native"] = "emulated", **formats: Any,
) -> Emulation:  # fmt: skip
    """A context in which every matrix product is computed as a machine does, by the formats of its factors.

    `machine`: a GPU ("H100", "MI300X"), or the path of a map that `identify --gemm --json` wrote, or a list of them; or
    `unit=` or `plan=` as for `mmaprobe.matmul`. `formats`: by a format, what stands for it instead:
    `emulate("H100", f32="plan:cublas/tf32")`.

    Shapes: any; K of a convolution is that of its channels and places.

    Units: products are rounded once to the type that PyTorch gives them. `convert` is a rounding of factors that the
    formats of `unit`, `plan` and `formats` do not hold. `unknown`: what is not known is an error, or native; `backward`
    native: products of gradients are native.

    Raises MmaprobeError: names that are not known; inside, UnsupportedProductError for a product without a rule or an
    operator that may multiply matrices and is not known.

    Source: what `report` says of each plan: recorded, inferred or given.
    """
    for name, given, known in (
        ("unknown", unknown, ("error", "native")), ("backward", backward, ("emulated", "native")),
    ):  # fmt: skip
        if given not in known:
            raise UnknownNameError(name, str(given), known)
    return Emulation(machine_of(machine, unit=unit, plan=plan, convert=convert, **formats), unknown, backward)
