"""PyTorch's products as devices: python:examples/torch_device.py:matmul, and with c: addmm."""

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
