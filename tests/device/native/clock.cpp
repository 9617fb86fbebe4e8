#include "clock.h"

#include <Python.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace standin {
namespace {

// A sleeping thread wakes up late, while a real driver's wait is a spin: so spin for the last moments.
constexpr Nanos kSpin = 60'000;

Nanos read(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void sleep_until(Nanos when) {
  static thread_local bool exact = prctl(PR_SET_TIMERSLACK, 1) == 0;
  (void)exact;
  timespec t{when / 1'000'000'000, when % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) != 0) {
  }
}

}  // namespace

Nanos now() { return read(CLOCK_MONOTONIC); }

Nanos epoch_offset() {
  static const Nanos offset = read(CLOCK_REALTIME) - read(CLOCK_MONOTONIC);
  return offset;
}

int32_t thread_id() {
  static thread_local int32_t id = static_cast<int32_t>(syscall(SYS_gettid));
  return id;
}

void spin_until(Nanos when) {
  while (now() < when) {
  }
}

void wait_until(Nanos when) {
  if (now() >= when) return;
  PyThreadState* state = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
  if (when - now() > kSpin) sleep_until(when - kSpin);
  spin_until(when);
  if (state) PyEval_RestoreThread(state);
}

}  // namespace standin
