// The truth: how long the device was busy in a window, and why it was idle the rest of the time.
#pragma once

#include <vector>

#include "timeline.h"

namespace standin {

struct Account {
  Nanos begin = 0, end = 0;
  Nanos busy = 0;  // some kernel was running
  Nanos idle_data = 0, idle_launch = 0, idle_sync = 0, idle_copy = 0;
  Nanos exchange = 0;  // of the busy time: only collectives were running
  int64_t kernels = 0, copies = 0;
};

class Accountant {
 public:
  explicit Accountant(int device);

  Account between(Nanos begin, Nanos end) const;

  bool empty() const { return kernels_.empty(); }
  Nanos first() const { return kernels_.front().start; }
  Nanos last() const { return last_; }
  // When everything launched before `moment` was done.
  Nanos done_with(Nanos moment) const;

 private:
  void charge_gap(Account& account, Nanos begin, Nanos end, const Interval* next) const;
  void charge_host(Account& account, Nanos begin, Nanos end) const;
  Nanos exposed(Nanos begin, Nanos end) const;

  std::vector<Interval> kernels_;  // by start, collectives among them
  std::vector<Nanos> busy_until_;  // latest end of kernels_[0..i]
  bool exchanges_ = false;
  std::vector<Interval> copies_;   // by start
  std::vector<HostSpan> waits_;    // of the host for data, syncs and copies, by begin
  std::vector<Nanos> waited_until_;  // latest end of waits_[0..i]
  Nanos last_ = 0;
};

}  // namespace standin
