#include "memory.h"

#include <c10/core/CPUAllocator.h>

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "guard.h"
#include "speeds.h"

namespace standin {
namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

constexpr size_t kRound = 512, kSmall = 1 << 20, kSegment = 2 << 20, kMap = 64 << 10;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Large blocks come from mmap and are kept by size: fresh ones are zero and cost nothing until touched, and operators
// that are only timed never touch them.
class Blocks {
 public:
  void* take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& list = free_[bytes];
    if (list.empty()) return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* memory = list.back();
    list.pop_back();
    return memory;
  }
  void give(void* memory, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_[bytes].push_back(memory);
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [bytes, list] : free_)
      for (void* memory : list) munmap(memory, bytes);
    free_.clear();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
};

Blocks& blocks() {
  static auto* instance = new Blocks();
  return *instance;
}

// What a DataPtr of the device owns.
struct Owned {
  c10::DataPtr host;  // adopted memory, or
  void* mapped;       // a block of ours
  size_t bytes, requested;
  int device;
};

class Allocator final : public c10::DeviceAllocator {
 public:
  Allocator() : stats_(64) {}

  c10::DataPtr allocate(size_t bytes) override {
    const int device = current_device();
    if (bytes < kMap) return wrap(c10::GetCPUAllocator()->allocate(bytes), bytes, device);
    count(bytes, device);
    const size_t rounded = round_up(bytes, kMap);
    void* memory = blocks().take(rounded);
    auto* owned = new Owned{{}, memory, rounded, bytes, device};
    return {memory, owned, &release, c10::Device(c10::kCUDA, device)};
  }

  c10::DataPtr wrap(c10::DataPtr&& host, size_t bytes, int device) {
    count(bytes, device);
    void* memory = host.get();
    auto* owned = new Owned{std::move(host), nullptr, bytes, bytes, device};
    return {memory, owned, &release, c10::Device(c10::kCUDA, device)};
  }

  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
  bool initialized() override { return true; }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}

  void emptyCache(c10::MempoolId_t) override {
    blocks().clear();
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& stats : stats_) shrink(stats);
  }
  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_.at(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    each(device, [](auto& stat) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    each(device, [](auto& stat) { stat.reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const size_t total = speeds().memory_bytes;
    return {total - getDeviceStats(device).reserved_bytes[0].current, total};
  }

 private:
  static StatType pool(size_t bytes) { return bytes < kSmall ? StatType::SMALL_POOL : StatType::LARGE_POOL; }

  template <typename Change>
  static void both(c10::CachingAllocator::StatArray& stat, StatType pool, Change change) {
    change(stat[0]);
    change(stat[static_cast<size_t>(pool)]);
  }

  template <typename Change>
  void each(int device, Change change) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& s = stats_.at(device);
    for (auto* array : {&s.allocation, &s.segment, &s.active, &s.inactive_split, &s.allocated_bytes,
                        &s.reserved_bytes, &s.active_bytes, &s.inactive_split_bytes, &s.requested_bytes})
      for (auto& stat : *array) change(stat);
  }

  void count(size_t requested, int device) {
    if (requested == 0) return;
    const size_t bytes = round_up(requested, kRound);
    std::lock_guard<std::mutex> lock(mutex_);
    auto& s = stats_.at(device);
    check_room(s, bytes, device);
    for (auto* array : {&s.allocated_bytes, &s.active_bytes})
      both(*array, pool(bytes), [&](auto& stat) { stat.increase(bytes); });
    both(s.requested_bytes, pool(bytes), [&](auto& stat) { stat.increase(requested); });
    for (auto* array : {&s.allocation, &s.active}) both(*array, pool(bytes), [](auto& stat) { stat.increase(1); });
    reserve(s, bytes);
  }

  void check_room(DeviceStats& s, size_t bytes, int device) {
    const int64_t free = speeds().memory_bytes - s.allocated_bytes[0].current;
    if (static_cast<int64_t>(bytes) <= free) return;
    s.num_ooms++;
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate ", bytes, " bytes. GPU ", device,
                     " (stand-in) has a total capacity of ", speeds().memory_bytes, " bytes of which ", free,
                     " bytes is free.");
  }

  // Simpler than a real allocator: reserved memory is the peak of allocated memory, in whole segments.
  void reserve(DeviceStats& s, size_t bytes) {
    const int64_t need = round_up(s.allocated_bytes[0].current, kSegment), more = need - s.reserved_bytes[0].current;
    if (more <= 0) return;
    both(s.reserved_bytes, pool(bytes), [&](auto& stat) { stat.increase(more); });
    both(s.segment, pool(bytes), [&](auto& stat) { stat.increase(more / kSegment); });
    s.num_device_alloc++;
  }

  void shrink(DeviceStats& s) {
    const int64_t need = round_up(s.allocated_bytes[0].current, kSegment);
    const int64_t less = s.reserved_bytes[0].current - need;
    if (less > 0) s.reserved_bytes[0].decrease(less), s.segment[0].decrease(less / kSegment);
  }

  void discount(const Owned& owned) {
    if (owned.requested == 0) return;
    const size_t bytes = round_up(owned.requested, kRound);
    std::lock_guard<std::mutex> lock(mutex_);
    auto& s = stats_.at(owned.device);
    for (auto* array : {&s.allocated_bytes, &s.active_bytes})
      both(*array, pool(bytes), [&](auto& stat) { stat.decrease(bytes); });
    both(s.requested_bytes, pool(bytes), [&](auto& stat) { stat.decrease(owned.requested); });
    for (auto* array : {&s.allocation, &s.active}) both(*array, pool(bytes), [](auto& stat) { stat.decrease(1); });
  }

  static void release(void* context);

  std::mutex mutex_;
  std::vector<DeviceStats> stats_;
};

Allocator& allocator() {
  static auto* instance = new Allocator();
  return *instance;
}

void Allocator::release(void* context) {
  auto* owned = static_cast<Owned*>(context);
  allocator().discount(*owned);
  if (owned->mapped) blocks().give(owned->mapped, owned->bytes);
  delete owned;
}

// Ordinary host memory whose addresses are remembered as pinned.
class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto* host = new c10::DataPtr(c10::GetCPUAllocator()->allocate(bytes));
    void* memory = host->get();
    if (memory) {
      std::lock_guard<std::mutex> lock(mutex_);
      ranges_[memory] = bytes;
    }
    return {memory, host, &release, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  bool contains(const void* address) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto after = ranges_.upper_bound(const_cast<void*>(address));
    if (after == ranges_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return address < static_cast<char*>(begin) + bytes;
  }

 private:
  static void release(void* context);

  std::mutex mutex_;
  std::map<void*, size_t> ranges_;
};

Pinned& pinned() {
  static auto* instance = new Pinned();
  return *instance;
}

void Pinned::release(void* context) {
  auto* host = static_cast<c10::DataPtr*>(context);
  {
    std::lock_guard<std::mutex> lock(pinned().mutex_);
    pinned().ranges_.erase(host->get());
  }
  delete host;
}

}  // namespace

c10::DeviceAllocator& device_allocator() { return allocator(); }
c10::Allocator& pinned_allocator() { return pinned(); }
bool is_pinned(const void* address) { return pinned().contains(address); }

void zero(void* memory, size_t bytes) {
  if (bytes < kMap)
    std::memset(memory, 0, bytes);
  else
    madvise(memory, round_up(bytes, kMap), MADV_DONTNEED);
}

c10::DataPtr adopt(c10::DataPtr&& host, size_t bytes, int device) {
  return allocator().wrap(std::move(host), bytes, device);
}

}  // namespace standin
