#include "shapes.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/ConvUtils.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace standin {
namespace {

void mix(uint64_t& hash, uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15ull + (hash >> 29); }

void mix_tensor(uint64_t& hash, const at::Tensor& t) {
  if (!t.defined()) return mix(hash, 1);
  mix(hash, 100 + static_cast<uint64_t>(t.scalar_type()));
  for (auto size : t.sizes()) mix(hash, size);
  for (auto stride : t.strides()) mix(hash, stride);
}

// Floating-point numbers never determine a shape but change from step to step, so they are left out.
void mix_value(uint64_t& hash, const c10::IValue& v) {
  if (v.isTensor()) return mix_tensor(hash, v.toTensor());
  if (v.isInt()) return mix(hash, v.toInt());
  if (v.isBool()) return mix(hash, v.toBool() ? 3 : 5);
  if (v.isList()) {
    mix(hash, 7);
    for (const c10::IValue& element : v.toList().vec()) mix_value(hash, element);
    return;
  }
  mix(hash, v.isNone() ? 11 : 13);
}

uint64_t hash_of(c10::ArrayRef<c10::IValue> arguments) {
  uint64_t hash = 17;
  for (const auto& argument : arguments) mix_value(hash, argument);
  return hash;
}

Shape shape_of(const at::Tensor& t) {
  if (!t.defined()) return {false, {}, {}, at::kFloat};
  return {true, t.sizes().vec(), t.strides().vec(), t.scalar_type()};
}

std::vector<Shape> shapes_of(const c10::IValue& result) {
  if (result.isTensor()) return {shape_of(result.toTensor())};
  std::vector<Shape> shapes;
  if (result.isTensorList())
    for (const at::Tensor& t : result.toTensorVector()) shapes.push_back(shape_of(t));
  return shapes;
}

Shapes shapes_of_all(c10::ArrayRef<c10::IValue> results) {
  Shapes shapes;
  for (const auto& result : results) shapes.push_back(shapes_of(result));
  return shapes;
}

Shape contiguous(std::vector<int64_t> sizes, at::ScalarType dtype) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= std::max<int64_t>(sizes[i], 1)) strides[i] = step;
  return {true, std::move(sizes), std::move(strides), dtype};
}

std::vector<int64_t> spread(std::vector<int64_t> values, int64_t dimensions) {
  if (values.size() == 1) values.resize(dimensions, values[0]);
  return values;
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Shapes convolution_shape(c10::ArrayRef<c10::IValue> a) {
  const auto input = a[0].toTensor(), weight = a[1].toTensor();
  const int64_t n = input.dim() - 2;
  const auto stride = spread(a[3].toIntVector(), n), padding = spread(a[4].toIntVector(), n),
             dilation = spread(a[5].toIntVector(), n), extra = spread(a[7].toIntVector(), n);
  auto sizes = a[6].toBool() ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, extra, stride,
                                                           dilation, a[8].toInt())
                             : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  return {{contiguous(std::move(sizes), input.scalar_type())}};
}

// convolution_backward(grad_output, input, weight, bias_sizes, ..., output_mask)
Shapes convolution_backward_shape(c10::ArrayRef<c10::IValue> a) {
  const auto input = a[1].toTensor(), weight = a[2].toTensor();
  const auto mask = a[10].toBoolList();
  const Shape none{false, {}, {}, at::kFloat};
  const int64_t channels = a[7].toBool() ? weight.size(1) * a[9].toInt() : weight.size(0);
  return {{mask[0] ? contiguous(input.sizes().vec(), input.scalar_type()) : none},
          {mask[1] ? contiguous(weight.sizes().vec(), weight.scalar_type()) : none},
          {mask[2] ? contiguous({channels}, weight.scalar_type()) : none}};
}

at::Tensor to_meta(const at::Tensor& t) {
  if (!t.defined()) return t;
  return at::detail::empty_strided_meta(t.sizes(), t.strides(), t.scalar_type());
}

c10::IValue to_meta(const c10::IValue& v) {
  if (v.isTensor()) return to_meta(v.toTensor());
  if (v.isDevice()) return c10::Device(c10::kMeta);
  if (!v.isTensorList()) return v;
  c10::List<at::Tensor> list;
  for (const at::Tensor& t : v.toTensorVector()) list.push_back(to_meta(t));
  return list;
}

Shapes shapes_by_meta_kernel(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  c10::Stack stack;
  for (const auto& argument : arguments) stack.push_back(to_meta(argument));
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  return shapes_of_all(stack);
}

std::optional<Shapes> derive(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const auto& name = op.operator_name().name;
  if (name == "aten::convolution") return convolution_shape(arguments);
  if (name == "aten::convolution_backward") return convolution_backward_shape(arguments);
  if (op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) return shapes_by_meta_kernel(op, arguments);
  return std::nullopt;
}

}  // namespace

const Shapes* ShapeMemory::find(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const uint64_t hash = hash_of(arguments);
  std::lock_guard<std::mutex> lock(mutex_);
  if (auto known = known_.find(hash); known != known_.end()) return &known->second;
  auto derived = derive(op, arguments);
  return derived ? &known_.emplace(hash, std::move(*derived)).first->second : nullptr;
}

void ShapeMemory::remember(c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results) {
  std::lock_guard<std::mutex> lock(mutex_);
  known_.emplace(hash_of(arguments), shapes_of_all(results));
}

}  // namespace standin
