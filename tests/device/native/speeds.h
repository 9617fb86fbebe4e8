// How fast the modelled device is. The values come from tests/device/speeds.py, which defines the defaults.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace standin {

struct Speeds {
  int devices = 0;
  int64_t memory_bytes = 0;
  double kernel_us = 0;       // fixed time of every kernel
  double bandwidth_gb_s = 0;  // device memory
  double fp64_tflops = 0, fp32_tflops = 0, tf32_tflops = 0, half_tflops = 0;
  double launch_us = 0;   // minimum host time of a launch
  double latency_us = 0;  // from the launch to the earliest start
  double copy_us = 0;     // fixed time of every copy between host and device
  double pinned_gb_s = 0, pageable_gb_s = 0;
  int64_t queue_length = 0;      // launches that may be pending on a stream
  int64_t compute_elements = 0;  // operators larger than this are timed but not computed
  double compute_flops = 0;
  std::unordered_map<std::string, double> kernels_us;  // operator name -> its time, instead of the model
};

// Set once, before the first device is requested.
Speeds& speeds();

}  // namespace standin
