#include "feed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "memory.h"
#include "nvml.h"
#include "speeds.h"
#include "timeline.h"

namespace standin {
namespace {

constexpr Nanos kWindow = 200'000'000;  // what "utilization" looks back on
constexpr auto kPeriod = std::chrono::milliseconds(50);

Control* control = nullptr;
int owner = 0;
std::atomic<bool> running{false};

void set(Gpu& gpu, property_id property, int64_t value) { gpu.properties[property] = {value, OK}; }

void describe(Gpu& gpu, int index, int64_t busy_percent) {
  const auto stats = device_allocator().getDeviceStats(static_cast<c10::DeviceIndex>(index));
  const int64_t used = stats.reserved_bytes[0].current;
  set(gpu, P_utilization, busy_percent);
  set(gpu, P_utilization_swing, 0);
  set(gpu, P_memory_total, speeds().memory_bytes);
  set(gpu, P_memory_used, used);
  set(gpu, P_gpm, 0);  // activity of single units is not modelled
  gpu.processes[0] = {static_cast<uint32_t>(owner), 0, static_cast<uint32_t>(busy_percent), ~0u, ~0u, 0,
                      static_cast<uint64_t>(used)};
  gpu.process_count = used > 0;
}

void refresh() {
  const Nanos end = now();
  for (int index = 0; index < speeds().devices && index < control->gpu_count; ++index)
    describe(control->gpus[index], index, device(index).busy_between(end - kWindow, end) * 100 / kWindow);
}

void keep_fresh() {
  while (running) {
    if (used()) refresh();
    std::this_thread::sleep_for(kPeriod);
  }
}

}  // namespace

void start_feed(const std::string& control_file) {
  const int file = open(control_file.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || control) return;
  void* mapped = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  control = static_cast<Control*>(mapped);
  owner = getpid();
  running = true;
  std::thread(keep_fresh).detach();
}

void stop_feed() {
  if (!running || getpid() != owner) return;
  running = false;
  for (int index = 0; index < speeds().devices && index < control->gpu_count; ++index) {
    auto& gpu = control->gpus[index];
    if (gpu.process_count == 0 || gpu.processes[0].pid != static_cast<uint32_t>(owner)) continue;
    set(gpu, P_utilization, 0);
    set(gpu, P_memory_used, 0);
    gpu.process_count = 0;
  }
}

}  // namespace standin
