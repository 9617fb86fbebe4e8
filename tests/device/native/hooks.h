// What torch asks about CUDA in general: devices, pinned memory, random generators.
#pragma once

#include <ATen/core/Generator.h>

namespace standin {

// The CPU generator behind a generator of the device.
at::Generator host_generator(const at::Generator& generator);
const at::Generator& default_generator(int device);

}  // namespace standin
