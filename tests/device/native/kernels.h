// The kernel behind every operator of the device that has a CPU kernel.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "cost.h"

namespace standin {

// Puts one kernel on the current stream of `device`; the host pays for the launch.
void launch_kernel(const std::string& name, int device, Nanos begin, const Cost& cost);

// A result that is not computed: zeros.
at::Tensor uncomputed(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, int device);

// Whether an operator of this size is computed, or only timed.
bool is_computed(int64_t elements, double flops);

void register_kernels();       // all operators with a CPU kernel, boxed
void register_copies();        // copies and reads of device values
void register_own_kernels();   // operators that need more than a CPU kernel
void register_recurrent_cells();
void register_recurrent_layers();
void register_attention();

}  // namespace standin
