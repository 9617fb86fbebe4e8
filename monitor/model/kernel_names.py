"""What a kernel's name reveals: whether it is a matrix product, and which units it runs on."""

from __future__ import annotations

import re

from sdk.patterns import later

TENSOR = later(
    r"tensorop|tensor16x8x|[hsi](884|1688|16816|8816|16832|161616)|_xmma_|hmma|imma|gmma|wgmma|warpspecialized"
    r"|flash_?(fwd|bwd|attn)|fmha|nvjet|_MI\d+x\d+|mfma|wmma",
    re.I,
)
"""Instruction shapes (s1688, h884, s16816), CUTLASS's and cuDNN's terms for tensor-core kernels, cuBLAS's
nvjet (Hopper and later), attention kernels; on AMD the matrix instruction in Tensile's names (MI16x16)."""
PLAIN = later(
    r"sgemm|dgemm|scudnn|dcudnn|_simt_|ffma|winograd|(dgrad|wgrad|fprop|fft)\w*_engine|gemv|convolve_sgemm"
    r"|conv_depthwise|gemmk1",
    re.I,
)
"""Kernels on the ordinary units: single and double precision, matrix times vector, depthwise."""
MATRIX = later(r"gemm|matmul|conv(?!ert)|cijk|attention|(^|[_:])(add|b|badd)?mm($|_)|dot", re.I)


def on_tensor_cores(name: str) -> bool | None:
    """From the name alone; None when it does not say, or is not a matrix kernel."""
    if TENSOR.search(name):
        return True
    return False if PLAIN.search(name) else None


def is_matrix(name: str) -> bool:
    """A matrix product, a convolution or attention: what lower precision speeds up."""
    return on_tensor_cores(name) is not None or bool(MATRIX.search(name))
