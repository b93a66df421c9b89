"""Products of more libraries as devices: python:examples/library_devices.py:jax, and the others. Each is imported when
it is asked; `cblas` loads the shared library that the variable CBLAS names."""

import ctypes
import os
from functools import cache

import numpy as np


def jax(a, b):
    import jax

    jax.config.update("jax_enable_x64", True)
    return np.asarray(jax.numpy.matmul(a, b))


def jax_stacked(a, b):
    """The third product of a stack of four equal products."""
    return jax(a[None].repeat(4, 0), b[None].repeat(4, 0))[2]


def tensorflow(a, b):
    import tensorflow

    return tensorflow.linalg.matmul(tensorflow.constant(a), tensorflow.constant(b)).numpy()


def scipy(a, b):
    from scipy.linalg import blas

    return np.ascontiguousarray((blas.sgemm if a.dtype == np.float32 else blas.dgemm)(1, a, b))


def onnxruntime(a, b):
    return session(a.dtype.char).run(None, {"a": a, "b": b})[0]


@cache
def session(kind):
    import onnxruntime
    from onnx import TensorProto, helper

    number = {"f": TensorProto.FLOAT, "d": TensorProto.DOUBLE, "e": TensorProto.FLOAT16}[kind]
    a, b, d = (helper.make_tensor_value_info(name, number, [None, None]) for name in "abd")
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["d"])], "product", [a, b], [d])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def cblas(a, b):
    """cblas_sgemm or cblas_dgemm, on matrices stored row after row."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    (m, k), n = a.shape, b.shape[1]
    d = np.zeros((m, n), a.dtype)
    name, real = {"f": ("cblas_sgemm", ctypes.c_float), "d": ("cblas_dgemm", ctypes.c_double)}[a.dtype.char]
    pointers = [ctypes.c_void_p(side.ctypes.data) for side in (a, b, d)]
    one, zero = real(1), real(0)
    getattr(library(), name)(101, 111, 111, m, n, k, one, pointers[0], k, pointers[1], n, zero, pointers[2], n)
    return d


@cache
def library():
    return ctypes.CDLL(os.environ["CBLAS"])
