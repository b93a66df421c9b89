"""PyTorch's products as devices: python:examples/torch_device.py:matmul, with c: addmm, on a GPU: on_gpu, in_f32."""

import ml_dtypes
import numpy as np
import torch


def tensor(x):
    """NumPy has no bfloat16: its bits pass as int16."""
    return (
        torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
        if x.dtype == ml_dtypes.bfloat16
        else torch.from_numpy(x)
    )


def matmul(a, b):
    return tensor(a) @ tensor(b)


def addmm(a, b, c):
    return torch.addmm(tensor(c), tensor(a), tensor(b))


def on_gpu(a, b):
    """With results in the inputs' format: cuBLAS, hipBLAS or another library of PyTorch's."""
    return (tensor(a).cuda() @ tensor(b).cuda()).cpu()


def in_f32(a, b):
    """With results in f32, of inputs of 16 bits."""
    return torch.mm(tensor(a).cuda(), tensor(b).cuda(), out_dtype=torch.float32).cpu()
