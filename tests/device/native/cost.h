// How long an operator takes on the modelled device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>

#include "clock.h"

namespace standin {

// Where the floating point work of an operator comes from.
enum class Math : uint8_t { none, mm, addmm, dot, convolution, convolution_backward };

Math math_of(const std::string& base_name);

struct Cost {
  int64_t bytes = 0;
  double flops = 0;
  Math math = Math::none;
  at::ScalarType dtype = at::kFloat;
  double kernels = 1;  // how many times it includes a kernel's fixed time
};

double flops_of(Math math, c10::ArrayRef<c10::IValue> arguments);

Nanos kernel_time(const std::string& name, const Cost& cost);
Nanos copy_time(int64_t bytes, bool pinned);

}  // namespace standin
