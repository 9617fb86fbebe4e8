#include "cost.h"

#include <ATen/Context.h>

#include "speeds.h"

namespace standin {
namespace {

double product(at::IntArrayRef sizes) {
  double all = 1;
  for (auto size : sizes) all *= static_cast<double>(size);
  return all;
}

// Matrix (or batch of matrices) times matrix or vector.
double matmul_flops(const at::Tensor& left, const at::Tensor& right) {
  const double columns = right.dim() >= 2 ? static_cast<double>(right.size(-1)) : 1;
  return 2 * product(left.sizes()) * columns;
}

// Every output value (every input value, if transposed) meets one filter.
double filter_size(const at::Tensor& weight) { return product(weight.sizes()) / static_cast<double>(weight.size(0)); }

double output_values(c10::ArrayRef<c10::IValue> a) {
  const auto input = a[0].toTensor(), weight = a[1].toTensor();
  const auto stride = a[3].toIntVector(), padding = a[4].toIntVector(), dilation = a[5].toIntVector();
  double values = static_cast<double>(input.size(0)) * static_cast<double>(weight.size(0));
  for (int64_t d = 2; d < input.dim(); ++d) {
    const int64_t i = std::min<int64_t>(d - 2, static_cast<int64_t>(stride.size()) - 1);
    const int64_t reach = dilation[i] * (weight.size(d) - 1) + 1;
    values *= static_cast<double>((input.size(d) + 2 * padding[i] - reach) / stride[i] + 1);
  }
  return values;
}

double forward_convolution(c10::ArrayRef<c10::IValue> a) {
  const bool transposed = a[6].toBool();
  const double values = transposed ? product(a[0].toTensor().sizes()) : output_values(a);
  return 2 * filter_size(a[1].toTensor()) * values;
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, ...): as much
// as forward for each of the gradients of input and weight.
double backward_convolution(c10::ArrayRef<c10::IValue> a) {
  const bool transposed = a[7].toBool();
  return 4 * filter_size(a[2].toTensor()) * product(a[transposed ? 1 : 0].toTensor().sizes());
}

bool uses_tf32(Math math) {
  auto& context = at::globalContext();
  const bool convolves = math == Math::convolution || math == Math::convolution_backward;
  return convolves ? context.allowTF32CuDNN(at::Float32Op::CONV) : context.allowTF32CuBLAS();
}

double flops_per_nanosecond(const Cost& cost) {
  const auto& s = speeds();
  if (cost.dtype == at::kDouble) return s.fp64_tflops * 1e3;
  if (cost.dtype == at::kHalf || cost.dtype == at::kBFloat16) return s.half_tflops * 1e3;
  return (uses_tf32(cost.math) ? s.tf32_tflops : s.fp32_tflops) * 1e3;
}

}  // namespace

Math math_of(const std::string& base) {
  if (base == "mm" || base == "bmm" || base == "mv") return Math::mm;
  if (base == "addmm" || base == "baddbmm" || base == "addmv" || base == "_addmm_activation" || base == "addbmm")
    return Math::addmm;
  if (base == "dot" || base == "vdot") return Math::dot;
  if (base == "convolution") return Math::convolution;
  if (base == "convolution_backward") return Math::convolution_backward;
  return Math::none;
}

double flops_of(Math math, c10::ArrayRef<c10::IValue> a) {
  switch (math) {
    case Math::mm: return matmul_flops(a[0].toTensor(), a[1].toTensor());
    case Math::addmm: return matmul_flops(a[1].toTensor(), a[2].toTensor());
    case Math::dot: return 2 * product(a[0].toTensor().sizes());
    case Math::convolution: return forward_convolution(a);
    case Math::convolution_backward: return backward_convolution(a);
    default: return 0;
  }
}

Nanos kernel_time(const std::string& name, const Cost& cost) {
  const auto& s = speeds();
  if (auto fixed = s.kernels_us.find(name); fixed != s.kernels_us.end()) return static_cast<Nanos>(fixed->second * 1e3);
  double time = cost.kernels * s.kernel_us * 1e3 + static_cast<double>(cost.bytes) / s.bandwidth_gb_s;
  if (cost.flops > 0) time += cost.flops / flops_per_nanosecond(cost);
  return static_cast<Nanos>(time);
}

Nanos copy_time(int64_t bytes, bool pinned) {
  const auto& s = speeds();
  return static_cast<Nanos>(s.copy_us * 1e3 + static_cast<double>(bytes) / (pinned ? s.pinned_gb_s : s.pageable_gb_s));
}

}  // namespace standin
