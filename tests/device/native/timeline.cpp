#include "timeline.h"

#include <algorithm>
#include <memory>

#include "speeds.h"

namespace standin {
namespace {

std::atomic<uint32_t> correlations{0};
std::mutex host_mutex;
std::vector<HostSpan> host_waits;
std::vector<Nanos> steps;
thread_local std::vector<int64_t> externals;

Nanos latency() { return static_cast<Nanos>(speeds().latency_us * 1e3); }

bool computes(const Interval& i) { return i.work == Work::kernel || i.work == Work::copy_within || i.work == Work::exchange; }

}  // namespace

Speeds& speeds() {
  static Speeds* instance = new Speeds();
  return *instance;
}

Nanos Engine::book(Nanos ready, Nanos duration) {
  const Nanos past = now();
  while (!booked_.empty() && booked_.front().end <= past) booked_.pop_front();
  if (booked_.empty() || ready >= booked_.back().end) {
    booked_.push_back({ready, ready + duration});
    return ready;
  }
  auto next = booked_.begin();
  for (; next != booked_.end() && ready + duration > next->start; ++next) ready = std::max(ready, next->end);
  booked_.insert(next, {ready, ready + duration});
  return ready;
}

Engine& Device::engine(Work work) {
  switch (work) {
    case Work::copy_in: return engines_[1];
    case Work::copy_out: return engines_[2];
    case Work::copy_peer: return engines_[3];
    default: return engines_[0];
  }
}

void Device::wait_for_room(int stream, std::unique_lock<std::mutex>& lock) {
  auto& pending = streams_[stream].pending;
  while (!pending.empty() && pending.front() <= now()) pending.pop_front();
  if (static_cast<int64_t>(pending.size()) < speeds().queue_length) return;
  const Nanos begin = now(), room = pending.front();
  lock.unlock();
  wait_until(room);
  record_wait({begin, now(), nullptr, thread_id(), static_cast<int16_t>(index_),
               static_cast<int16_t>(stream), Wait::queue});
  lock.lock();
}

Nanos Device::launch(int stream, const Launch& launch) {
  const Nanos called = launch.called ? launch.called : now();
  std::unique_lock<std::mutex> lock(mutex_);
  wait_for_room(stream, lock);
  auto& on = streams_[stream];
  const Nanos launched = now();
  const Nanos start = engine(launch.work).book(std::max(launched + latency(), on.tail), launch.duration);
  const Nanos end = start + launch.duration;
  on.tail = end;
  on.pending.push_back(end);
  history_.push_back({start, end, launch.begin, called, launch.holds_host ? end : launched, launch.name, launch.bytes,
                      externals.empty() ? 0 : externals.back(), ++correlations, thread_id(), static_cast<int16_t>(stream), launch.work, launch.pinned});
  return end;
}

Nanos Device::tail(int stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return streams_[stream].tail;
}

Nanos Device::tail() {
  std::lock_guard<std::mutex> lock(mutex_);
  Nanos latest = 0;
  for (const auto& stream : streams_) latest = std::max(latest, stream.tail);
  return latest;
}

Nanos Device::mark(int stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& tail = streams_[stream].tail;
  return tail = std::max(tail, now() + latency());
}

void Device::exchange(int stream, Nanos begin, Nanos end, int64_t bytes, Nanos launched, int32_t thread) {
  static const std::string name = "all_reduce";
  std::lock_guard<std::mutex> lock(mutex_);
  streams_[stream].tail = std::max(streams_[stream].tail, end);
  history_.push_back({begin, end, launched, launched, launched, &name, bytes, 0, ++correlations, thread,
                      static_cast<int16_t>(stream), Work::exchange, false});
}

void Device::hold(int stream, Nanos when) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& tail = streams_[stream].tail;
  tail = std::max(tail, when);
}

void Device::synchronize(int stream, const char* call, Wait wait) {
  const Nanos begin = now();
  wait_until(tail(stream));
  record_wait({begin, now(), call, thread_id(), static_cast<int16_t>(index_), static_cast<int16_t>(stream), wait});
}

void Device::synchronize() {
  const Nanos begin = now();
  wait_until(tail());
  record_wait({begin, now(), "cudaDeviceSynchronize", thread_id(), static_cast<int16_t>(index_), 0, Wait::sync});
}

std::vector<Interval> Device::history() {
  std::lock_guard<std::mutex> lock(mutex_);
  return history_;
}

Nanos Device::busy_between(Nanos begin, Nanos end) {
  std::lock_guard<std::mutex> lock(mutex_);
  Nanos busy = 0;
  for (auto i = history_.rbegin(); i != history_.rend(); ++i) {
    // A copy can end late but be listed early: look a little further back than the first old kernel.
    if (i->launch_end < begin && i->end < begin && computes(*i)) break;
    if (computes(*i)) busy += std::max<Nanos>(0, std::min(i->end, end) - std::max(i->start, begin));
  }
  return busy;
}

Device& device(int index) {
  static auto* devices = [] {
    auto* all = new std::vector<std::unique_ptr<Device>>();
    for (int i = 0; i < speeds().devices; ++i) all->push_back(std::make_unique<Device>(i));
    return all;
  }();
  return *devices->at(index);
}

bool used() { return correlations.load() > 0; }

void push_external(int64_t id) { externals.push_back(id); }

void pop_external() {
  if (!externals.empty()) externals.pop_back();
}

void record_wait(const HostSpan& span) {
  std::lock_guard<std::mutex> lock(host_mutex);
  host_waits.push_back(span);
}

std::vector<HostSpan> waits() {
  std::lock_guard<std::mutex> lock(host_mutex);
  return host_waits;
}

void mark_step() {
  std::lock_guard<std::mutex> lock(host_mutex);
  steps.push_back(now());
}

std::vector<Nanos> step_marks() {
  std::lock_guard<std::mutex> lock(host_mutex);
  return steps;
}

}  // namespace standin
