"""Kernels by weight and by name."""

from __future__ import annotations

import pytest

from monitor.model.kernel_names import is_matrix, on_tensor_cores
from monitor.traces import analyse
from monitor.traces.kernels import HEAVIEST
from tests.unit.traces.maker import Maker


def test_the_heaviest_first() -> None:
    maker = Maker()
    for at in range(HEAVIEST + 5):
        maker.kernel(at * 100, at + 1, name=f"kernel_{at}")
    maker.kernel(5000, 15, name=f"kernel_{HEAVIEST + 4}")
    report = analyse(maker.trace())
    assert report.kernel_names == HEAVIEST + 5
    assert len(report.kernels) == HEAVIEST
    first = report.kernels[0]
    assert (first.name, first.count, first.mean_seconds) == (
        f"kernel_{HEAVIEST + 4}",
        2,
        pytest.approx(15e-6),
    )
    assert first.share == pytest.approx(30 / (120 + 15))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4", True),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn", True),
        ("volta_fp16_h884gemm_128x64_ldg8_nn", True),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw", True),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", True),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", True),
        ("Cijk_Alik_Bljk_SB_MT64x16x32_MI16x16x1_SN", True),
        ("volta_sgemm_64x64_nt", False),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", False),
        ("void cudnn::detail::dgrad_engine<float, 512>", False),
        ("ampere_dgemm_64x64_nn", False),
        ("void at::native::vectorized_elementwise_kernel<4>", None),
        ("some_new_matmul", None),
    ],
)
def test_tensor_cores_by_name(name: str, expected: bool | None) -> None:
    assert on_tensor_cores(name) is expected


def test_the_share_is_of_the_kernels_that_can_be_told() -> None:
    maker = Maker()
    maker.kernel(0, 30, name="cutlass_80_tensorop_s1688gemm")
    maker.kernel(30, 10, name="volta_sgemm_64x64_nt")
    maker.kernel(40, 60, name="triton_matmul_kernel")
    maker.kernel(100, 500, name="elementwise")
    units = analyse(maker.trace()).tensor_cores
    assert units is not None
    assert units.ratio == pytest.approx(0.75)
    assert units.unknown_seconds == pytest.approx(60e-6)


def test_without_matrix_kernels_there_is_nothing_to_say() -> None:
    maker = Maker()
    maker.kernel(0, 30, name="elementwise")
    assert analyse(maker.trace()).tensor_cores is None


def test_communication_and_its_overlap() -> None:
    maker = Maker()
    maker.kernel(0, 100, stream=7)
    maker.kernel(60, 100, stream=20, name="ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)")
    maker.kernel(180, 20, stream=7)
    talk = analyse(maker.trace()).devices[0].communication
    assert talk is not None
    assert talk.overlapped_seconds == pytest.approx(40e-6)
    assert talk.exposed_seconds == pytest.approx(60e-6)
    assert talk.overlap_ratio == pytest.approx(0.4)
    assert talk.exposed_ratio == pytest.approx(0.3)


def test_products_of_matrices() -> None:
    for name in (
        "ampere_sgemm_128x64_nn",
        "standin::addmm",
        "standin::mm",
        "implicit_convolve_sgemm",
        "triton_mm_",
    ):
        assert is_matrix(name), name
    for name in ("vectorized_elementwise_kernel", "standin::add", "multi_tensor_apply_kernel", "summary"):
        assert not is_matrix(name), name
