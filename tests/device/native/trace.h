// The device's work as a trace file, in torch.profiler's format.
#pragma once

#include <string>

#include "timeline.h"

namespace standin {

bool is_kernel(const Interval& interval);            // or a collective; else a copy
const char* category(const Interval& interval);      // "kernel" or "gpu_memcpy"
std::string display_name(const Interval& interval);  // "standin::addmm", "Memcpy HtoD (Pageable -> Device)", ...
const char* runtime_call(const Interval& interval);  // "cudaLaunchKernel" or "cudaMemcpyAsync"
int trace_stream(int stream);                        // the number profilers show for a stream

// Writes at most `limit` pieces of work per device; returns how many were left out.
int64_t write_trace(const std::string& path, int64_t limit);

}  // namespace standin
