// The device's time: what runs when on which engine, computed at the moment of each launch.
//
// There is no device thread. A launch at host time t starts at the first moment >= t + latency at which its stream
// has reached it and its engine is free, so start and end are known at once; waiting for work means waiting for a
// point in time.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "clock.h"

namespace standin {

enum class Work : uint8_t { kernel, copy_in, copy_out, copy_within, copy_peer, exchange };

// One piece of work on a device, and its launch by the host.
struct Interval {
  Nanos start, end;                // on the device
  Nanos op_begin;                  // when the host began the operator,
  Nanos launch_begin, launch_end;  // and its launch
  const std::string* name;          // of the operator; lives as long as the process
  int64_t bytes;
  int64_t external;  // the profiler's number of the operator, 0 without a profiler
  uint32_t correlation;
  int32_t thread;
  int16_t stream;
  Work work;
  bool pinned;
};

// Why a host thread waited.
enum class Wait : uint8_t { data, sync, copy, queue };

struct HostSpan {
  Nanos begin, end;
  const char* call;  // what a profiler would show; nullptr: it shows the launch that waited
  int32_t thread;
  int16_t device, stream;
  Wait wait;
};

struct Launch {
  const std::string* name;
  Nanos begin;  // when the host began it
  Nanos duration;
  int64_t bytes = 0;
  Work work = Work::kernel;
  bool pinned = false;
  Nanos called = 0;         // when the driver was called, if before now
  bool holds_host = false;  // the call returns when the work is done
};

// A resource that does one thing at a time: the compute units, or one direction of copies.
class Engine {
 public:
  // Books `duration` in the first gap at or after `ready`; returns the start.
  Nanos book(Nanos ready, Nanos duration);

 private:
  struct Slot {
    Nanos start, end;
  };
  std::deque<Slot> booked_;  // disjoint, in order, not yet past
};

class Device {
 public:
  static constexpr int kStreams = 65;  // the default stream, 32 of the pool, 32 of high priority

  explicit Device(int index) : index_(index) {}

  // Puts work on a stream; waits first if the stream's queue is full. Returns when the work ends.
  Nanos launch(int stream, const Launch& launch);

  // When everything queued on the stream so far is done.
  Nanos tail(int stream);
  Nanos tail();

  // When an event recorded now will fire.
  Nanos mark(int stream);
  // A collective occupies the stream from `begin` to `end`, beside the kernels; the host launched it earlier.
  void exchange(int stream, Nanos begin, Nanos end, int64_t bytes, Nanos launched, int32_t thread);
  // Later work on the stream starts no earlier than `when`.
  void hold(int stream, Nanos when);

  // The host waits for the stream (or the whole device).
  void synchronize(int stream, const char* call, Wait wait = Wait::sync);
  void synchronize();

  std::vector<Interval> history();
  // Busy nanoseconds of the compute engine in a past window.
  Nanos busy_between(Nanos begin, Nanos end);

 private:
  struct Stream {
    Nanos tail = 0;
    std::deque<Nanos> pending;  // ends of the launches that are not done yet
  };
  void wait_for_room(int stream, std::unique_lock<std::mutex>& lock);
  Engine& engine(Work work);

  const int index_;
  std::mutex mutex_;
  std::array<Stream, kStreams> streams_;
  std::array<Engine, 4> engines_;
  std::vector<Interval> history_;
};

Device& device(int index);
bool used();  // whether anything was ever launched

// The profiler's number of the operator this thread is in.
void push_external(int64_t id);
void pop_external();

void record_wait(const HostSpan& span);
std::vector<HostSpan> waits();

// Points the training loop passed: ends of optimizer steps.
void mark_step();
std::vector<Nanos> step_marks();

}  // namespace standin
