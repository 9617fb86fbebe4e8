// The shapes of an operator's results without computing it: from a rule, from torch's meta kernel, or remembered from
// the last call with the same shapes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <mutex>
#include <optional>
#include <vector>

namespace standin {

struct Shape {
  bool defined = true;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype = at::kFloat;
};

// One entry per result; a result that is a list of tensors has several shapes.
using Shapes = std::vector<std::vector<Shape>>;

class ShapeMemory {
 public:
  const Shapes* find(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  void remember(c10::ArrayRef<c10::IValue> arguments, c10::ArrayRef<c10::IValue> results);

 private:
  std::mutex mutex_;  // the backward pass has its own thread
  std::unordered_map<uint64_t, Shapes> known_;
};

}  // namespace standin
