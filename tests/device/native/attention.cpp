// Scaled dot product attention as one kernel forward and one backward: the CPU's fused kernels under CUDA's names.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

#include "alias.h"
#include "kernels.h"

namespace standin {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

constexpr int64_t kMath = 0, kEfficient = 2;  // at::SDPBackend
const std::string kForward = "attention", kBackward = "attention_backward";

int64_t choose(const Tensor&, const Tensor&, const Tensor&, const Optional&, double dropout, bool, std::optional<double>,
               bool grouped) {
  return dropout > 0 || grouped ? kMath : kEfficient;
}

// Two products of queries with keys (or values), each rows x columns x width.
double flops_of(const Tensor& query, const Tensor& key) {
  return 4.0 * static_cast<double>(query.numel()) * static_cast<double>(key.size(-2));
}

Cost cost_of(const Tensor& query, const Tensor& key, double passes) {
  const int64_t bytes = 2 * static_cast<int64_t>(query.nbytes() + key.nbytes());
  return {bytes, passes * flops_of(query, key), Math::mm, query.scalar_type()};
}

bool computes(const Tensor& query, const Tensor& key) {
  return is_computed(std::max(query.numel(), key.numel()), flops_of(query, key));
}

Tensor device_tensor(const Tensor& host, int device) { return Aliases(device).to_device(host); }

Tensor blank(at::IntArrayRef sizes, const Tensor& like, at::ScalarType dtype) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * sizes[i + 1];
  return uncomputed(sizes, strides, dtype, like.device().index());
}

Optional host_mask(const Optional& mask) {
  return mask && mask->defined() ? Optional(host_view(*mask)) : std::nullopt;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                   const Optional& mask, bool, double, bool causal,
                                                   std::optional<double> scale) {
  const Nanos begin = now();
  const int device = query.device().index();
  at::AutoDispatchBelowADInplaceOrView no_autograd;
  Tensor out, sums;
  if (computes(query, key)) {
    std::tie(out, sums) = at::_scaled_dot_product_flash_attention_for_cpu(
        host_view(query), host_view(key), host_view(value), 0.0, causal, host_mask(mask), scale);
    out = device_tensor(out, device), sums = device_tensor(sums, device);
  } else {
    out = blank({query.size(0), query.size(1), query.size(2), value.size(3)}, query, query.scalar_type());
    sums = blank({query.size(0), query.size(1), query.size(2)}, query, at::kFloat);
  }
  const Tensor seed = blank({1}, query, at::kLong);
  launch_kernel(kForward, device, begin, cost_of(query, key, 1));
  return {out, sums, seed, seed};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                    const Tensor& value, const Tensor& mask, const Tensor& out,
                                                    const Tensor& sums, const Tensor&, const Tensor&, double,
                                                    std::array<bool, 4>, bool causal, std::optional<double> scale) {
  const Nanos begin = now();
  const int device = query.device().index();
  at::AutoDispatchBelowADInplaceOrView no_autograd;
  Tensor q, k, v;
  if (computes(query, key)) {
    std::tie(q, k, v) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        host_view(grad), host_view(query), host_view(key), host_view(value), host_view(out), host_view(sums), 0.0,
        causal, host_mask(mask), scale);
    q = device_tensor(q, device), k = device_tensor(k, device), v = device_tensor(v, device);
  } else {
    q = blank(query.sizes(), query, query.scalar_type());
    k = blank(key.sizes(), key, key.scalar_type());
    v = blank(value.sizes(), value, value.scalar_type());
  }
  launch_kernel(kBackward, device, begin, cost_of(query, key, 2.5));
  return {q, k, v, Tensor()};
}

}  // namespace

void register_attention() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library.impl("_fused_sdp_choice", TORCH_FN(choose));
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&choose);
  library.impl("_scaled_dot_product_efficient_attention", TORCH_FN(forward));
  library.impl("_scaled_dot_product_efficient_attention_backward", TORCH_FN(backward));
}

}  // namespace standin
