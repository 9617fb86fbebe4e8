#include "account.h"

#include <algorithm>

#include "speeds.h"

namespace standin {
namespace {

Nanos& idle(Account& account, Wait cause) {
  switch (cause) {
    case Wait::data: return account.idle_data;
    case Wait::sync: return account.idle_sync;
    case Wait::copy: return account.idle_copy;
    default: return account.idle_launch;
  }
}

bool concerns(const HostSpan& span, int device) {
  return span.wait != Wait::queue && (span.device < 0 || span.device == device);
}

}  // namespace

Accountant::Accountant(int index) {
  for (const auto& interval : device(index).history()) {
    const bool computes = interval.work == Work::kernel || interval.work == Work::copy_within;
    const bool kernel = computes || interval.work == Work::exchange;
    (kernel ? kernels_ : copies_).push_back(interval);
    exchanges_ |= interval.work == Work::exchange;
    last_ = std::max(last_, interval.end);
  }
  for (const auto& span : waits())
    if (concerns(span, index)) waits_.push_back(span);
  const auto earlier = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  std::sort(kernels_.begin(), kernels_.end(), earlier);
  std::sort(copies_.begin(), copies_.end(), earlier);
  std::sort(waits_.begin(), waits_.end(), [](const HostSpan& a, const HostSpan& b) { return a.begin < b.begin; });
  for (const auto& kernel : kernels_)
    busy_until_.push_back(busy_until_.empty() ? kernel.end : std::max(busy_until_.back(), kernel.end));
  for (const auto& span : waits_)
    waited_until_.push_back(waited_until_.empty() ? span.end : std::max(waited_until_.back(), span.end));
}

Account Accountant::between(Nanos begin, Nanos end) const {
  Account account{begin, end};
  const auto starts_before = [](const Interval& i, Nanos t) { return i.start < t; };
  const auto reaching = std::upper_bound(busy_until_.begin(), busy_until_.end(), begin);
  auto next = kernels_.begin() + (reaching - busy_until_.begin());
  Nanos reached = begin;
  for (; next != kernels_.end() && next->start < end; ++next) {
    if (next->end <= reached) continue;
    if (next->start > reached) charge_gap(account, reached, next->start, &*next);
    account.busy += std::min(next->end, end) - std::max(next->start, reached);
    account.kernels += next->start >= begin;
    reached = next->end;
  }
  if (reached < end) charge_gap(account, reached, end, next == kernels_.end() ? nullptr : &*next);
  if (exchanges_) account.exchange = exposed(begin, end);
  const auto copy = std::lower_bound(copies_.begin(), copies_.end(), begin, starts_before);
  account.copies = std::lower_bound(copy, copies_.end(), end, starts_before) - copy;
  return account;
}

// What collectives add to the time in which a kernel runs.
Nanos Accountant::exposed(Nanos begin, Nanos end) const {
  Nanos alone = 0, all_until = begin, computed_until = begin;
  const auto fresh = [end](const Interval& i, Nanos& until) {
    const Nanos more = std::max<Nanos>(0, std::min(i.end, end) - std::max(i.start, until));
    until = std::max(until, i.end);
    return more;
  };
  for (const auto& kernel : kernels_) {
    alone += fresh(kernel, all_until);
    if (kernel.work != Work::exchange) alone -= fresh(kernel, computed_until);
  }
  return alone;
}

Nanos Accountant::done_with(Nanos moment) const {
  Nanos done = moment;
  for (const auto& kernel : kernels_)
    if (kernel.launch_end <= moment) done = std::max(done, kernel.end);
  return done;
}

// Until the next kernel is launched the gap is the host's; from then on the kernel waits for a copy or for another
// stream's event, which means a copy too, since no kernel is running.
void Accountant::charge_gap(Account& account, Nanos begin, Nanos end, const Interval* next) const {
  Nanos launched = end;
  if (next) launched = std::clamp(next->launch_end + static_cast<Nanos>(speeds().latency_us * 1e3), begin, end);
  charge_host(account, begin, launched);
  account.idle_copy += end - launched;
}

// Time in a wait belongs to that wait. After a sync or a blocking copy the host is late by as long as it waited, so
// up to that much of the idle time that follows would not exist without it. The rest is a host that is too slow.
void Accountant::charge_host(Account& account, Nanos begin, Nanos end) const {
  Wait cause = Wait::queue;
  Nanos behind = 0;
  const auto charge_until = [&](Nanos until) {
    const Nanos caused = std::min(behind, until - begin);
    idle(account, cause) += caused;
    account.idle_launch += until - begin - caused;
    behind -= caused;
    begin = until;
  };
  const auto first = std::upper_bound(waited_until_.begin(), waited_until_.end(), begin);
  for (auto span = waits_.begin() + (first - waited_until_.begin()); span != waits_.end() && span->begin < end; ++span) {
    if (span->end <= begin) continue;
    if (span->begin > begin) charge_until(span->begin);
    const Nanos until = std::min(span->end, end);
    idle(account, span->wait) += until - begin;
    begin = until;
    if (span->wait != Wait::data && span->end - span->begin > behind)
      cause = span->wait, behind = span->end - span->begin;
  }
  if (begin < end) charge_until(end);
}

}  // namespace standin
