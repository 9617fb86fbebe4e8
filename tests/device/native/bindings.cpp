// The Python module `gpumon_standin`: what tests/device/cuda.py puts under torch's own names.
#include <c10/core/CachingDeviceAllocator.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <unistd.h>

#include "account.h"
#include "copies.h"
#include "feed.h"
#include "guard.h"
#include "hooks.h"
#include "kernels.h"
#include "memory.h"
#include "profiler.h"
#include "speeds.h"
#include "timeline.h"
#include "trace.h"

namespace py = pybind11;

namespace standin {
namespace {

void configure(const py::dict& values) {
  auto& s = speeds();
  const auto number = [&](const char* key) { return values[key].cast<double>(); };
  s.devices = values["devices"].cast<int>();
  s.memory_bytes = static_cast<int64_t>(number("memory_gb") * (1 << 30));
  s.kernel_us = number("kernel_us");
  s.bandwidth_gb_s = number("bandwidth_gb_s");
  s.fp64_tflops = number("fp64_tflops");
  s.fp32_tflops = number("fp32_tflops");
  s.tf32_tflops = number("tf32_tflops");
  s.half_tflops = number("half_tflops");
  s.launch_us = number("launch_us");
  s.latency_us = number("latency_us");
  s.copy_us = number("copy_us");
  s.pinned_gb_s = number("pinned_gb_s");
  s.pageable_gb_s = number("pageable_gb_s");
  s.queue_length = values["queue_length"].cast<int64_t>();
  s.compute_elements = values["compute_elements"].cast<int64_t>();
  s.compute_flops = number("compute_flops");
  s.kernels_us = values["kernels_us"].cast<std::unordered_map<std::string, double>>();
}

void install(const py::dict& values) {
  configure(values);
  register_guard();
  c10::SetAllocator(c10::kCUDA, &device_allocator());
  register_own_kernels();
  register_recurrent_cells();
  register_recurrent_layers();
  register_attention();
  register_copies();
  register_kernels();
  register_profiler();
}

py::dict describe(const c10::CachingAllocator::Stat& stat) {
  py::dict made;
  made["current"] = stat.current;
  made["peak"] = stat.peak;
  made["allocated"] = stat.allocated;
  made["freed"] = stat.freed;
  return made;
}

py::dict describe(const c10::CachingAllocator::StatArray& stats) {
  py::dict made;
  const char* pools[] = {"all", "small_pool", "large_pool"};
  for (size_t i = 0; i < 3; ++i) made[pools[i]] = describe(stats[i]);
  return made;
}

py::dict memory_stats(int device) {
  const auto s = device_allocator().getDeviceStats(static_cast<c10::DeviceIndex>(device));
  py::dict made;
  made["allocation"] = describe(s.allocation);
  made["segment"] = describe(s.segment);
  made["active"] = describe(s.active);
  made["inactive_split"] = describe(s.inactive_split);
  made["allocated_bytes"] = describe(s.allocated_bytes);
  made["reserved_bytes"] = describe(s.reserved_bytes);
  made["active_bytes"] = describe(s.active_bytes);
  made["inactive_split_bytes"] = describe(s.inactive_split_bytes);
  made["requested_bytes"] = describe(s.requested_bytes);
  made["oversize_allocations"] = describe(s.oversize_allocations);
  made["oversize_segments"] = describe(s.oversize_segments);
  made["num_alloc_retries"] = s.num_alloc_retries;
  made["num_ooms"] = s.num_ooms;
  made["num_sync_all_streams"] = s.num_sync_all_streams;
  made["num_device_alloc"] = s.num_device_alloc;
  made["num_device_free"] = s.num_device_free;
  return made;
}

py::dict describe(const Account& a) {
  const auto seconds = [](Nanos t) { return static_cast<double>(t) / 1e9; };
  py::dict idle, made;
  idle["data"] = seconds(a.idle_data);
  idle["launch"] = seconds(a.idle_launch);
  idle["sync"] = seconds(a.idle_sync);
  idle["copy"] = seconds(a.idle_copy);
  made["begin"] = seconds(a.begin);
  made["seconds"] = seconds(a.end - a.begin);
  made["busy"] = seconds(a.busy);
  made["idle"] = idle;
  made["exchange"] = seconds(a.exchange);
  made["kernels"] = a.kernels;
  made["copies"] = a.copies;
  return made;
}

// The account of a device over each of the windows given as pairs of nanoseconds.
py::list accounts(int device, const std::vector<std::pair<Nanos, Nanos>>& windows) {
  const Accountant accountant(device);
  py::list made;
  for (const auto& [begin, end] : windows) made.append(describe(accountant.between(begin, end)));
  return made;
}

py::object activity(int device) {
  const Accountant accountant(device);
  if (accountant.empty()) return py::none();
  return py::make_tuple(accountant.first(), accountant.last());
}

Nanos done_with(int device, Nanos moment) { return Accountant(device).done_with(moment); }

py::list default_generators() {
  py::list made;
  for (int i = 0; i < speeds().devices; ++i)
    made.append(py::reinterpret_steal<py::object>(THPGenerator_initDefaultGenerator(default_generator(i))));
  return made;
}

void record_data_wait(Nanos begin) {
  record_wait({begin, now(), "enumerate(DataLoader).__next__", thread_id(), -1, 0, Wait::data});
}

void sleep_on_device(double microseconds) {
  static const std::string name = "sleep";
  const int index = current_device();
  device(index).launch(current_stream(index), {&name, now(), static_cast<Nanos>(microseconds * 1e3)});
}

}  // namespace
}  // namespace standin

PYBIND11_MODULE(gpumon_standin, m) {
  using namespace standin;
  m.def("configure", &configure);
  m.def("install", &install);
  m.def("used", &used);
  m.def("now", &now);

  m.def("get_device", &current_device);
  m.def("set_device", &set_device);
  m.def("get_stream", &current_stream);
  m.def("set_stream", &set_stream);
  m.def("synchronize", [](int index) { device(index).synchronize(); });
  m.def("elapsed_ms", &elapsed_ms);
  m.def("mark", [](int index, int stream) { return device(index).mark(stream); });
  m.def("exchange", [](int index, int stream, Nanos begin, Nanos end, int64_t bytes, Nanos launched, int32_t thread) {
    device(index).exchange(stream, begin, end, bytes, launched, thread);
  });
  m.def("sleep", &sleep_on_device);
  m.def("set_sync_debug_mode", &set_sync_debug_mode);
  m.def("get_sync_debug_mode", &sync_debug_mode);
  m.def("default_generators", &default_generators);

  m.def("memory_stats", &memory_stats);
  m.def("memory_info", [](int d) { return device_allocator().getMemoryInfo(static_cast<c10::DeviceIndex>(d)); });
  m.def("reset_peak", [](int d) { device_allocator().resetPeakStats(static_cast<c10::DeviceIndex>(d)); });
  m.def("reset_accumulated", [](int d) { device_allocator().resetAccumulatedStats(static_cast<c10::DeviceIndex>(d)); });
  m.def("empty_cache", [] { device_allocator().emptyCache({0, 0}); });

  m.def("mark_step", &mark_step);
  m.def("step_marks", &step_marks);
  m.def("record_data_wait", &record_data_wait);
  m.def("accounts", &accounts);
  m.def("activity", &activity);
  m.def("done_with", &done_with);
  m.def("write_trace", &write_trace);
  m.def("start_feed", &start_feed);
  m.def("stop_feed", &stop_feed);
}
