#include "copies.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_local_scalar_dense_ops.h>
#include <ATen/ops/copy_ops.h>
#include <torch/library.h>

#include <atomic>

#include "alias.h"
#include "cost.h"
#include "guard.h"
#include "kernels.h"
#include "memory.h"
#include "speeds.h"
#include "timeline.h"

namespace standin {
namespace {

// Up to this size, a copy from pageable memory is staged at once and does not wait for the stream.
constexpr int64_t kStaged = 64 << 10;

const std::string kCopy = "copy_", kRead = "_local_scalar_dense", kSize = "size of a result";

std::atomic<int> debug_mode{0};

void warn_on_sync() {
  if (debug_mode == 1) TORCH_WARN("called a synchronizing CUDA operation");
  TORCH_CHECK(debug_mode != 2, "called a synchronizing CUDA operation");
}

void pay_launch(Nanos begin) { spin_until(begin + static_cast<Nanos>(speeds().launch_us * 1e3)); }

// The values themselves: an asynchronous copy of much data must not cost the host what a DMA engine would do.
void copy_values(const at::Tensor& to, const at::Tensor& from, bool needed) {
  if (!needed && !is_computed(to.numel(), 0)) return;
  at::AutoDispatchBelowADInplaceOrView no_autograd;
  at::Tensor target = host_view(to);
  at::_ops::copy_::call(target, host_view(from), false);
}

struct Transfer {
  int device, stream;
  Work work;
  int64_t bytes;
  bool pinned, non_blocking;
  Nanos begin;
};

// A small blocking copy is a sync with a few bytes; in a large one the bytes take the time.
Wait kind_of_wait(const Transfer& t) { return t.bytes <= kStaged ? Wait::sync : Wait::copy; }

void record_blocked(const Transfer& t, Nanos begin, const char* call) {
  record_wait({begin, now(), call, thread_id(), static_cast<int16_t>(t.device), static_cast<int16_t>(t.stream),
               kind_of_wait(t)});
}

Nanos enqueue(const Transfer& t, const std::string& name, Nanos called, bool holds_host) {
  return device(t.device).launch(t.stream, {&name, t.begin, copy_time(t.bytes, t.pinned), t.bytes, t.work, t.pinned,
                                            called, holds_host});
}

// To or from pageable memory the driver copies through its own buffer: first the stream must be done, then the host
// copies piece by piece, and the call returns at the end.
bool goes_through_host(const Transfer& t) { return !t.pinned && (t.work == Work::copy_out || t.bytes > kStaged); }

void transfer(const Transfer& t, const std::string& name) {
  pay_launch(t.begin);
  const bool through_host = goes_through_host(t);
  if (!t.non_blocking || through_host) warn_on_sync();
  const Nanos called = now();
  if (through_host) wait_until(device(t.device).tail(t.stream));
  const Nanos end = enqueue(t, name, called, through_host), enqueued = now();
  if (through_host || !t.non_blocking) wait_until(end);
  if (through_host)
    record_blocked(t, called, nullptr);
  else if (!t.non_blocking)
    record_blocked(t, enqueued, "cudaStreamSynchronize");
}

void copy_between_host_and_device(const at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const bool in = to.is_cuda();
  const at::Tensor& there = in ? to : from;
  const at::Tensor& here = in ? from : to;
  const int index = there.device().index();
  const Nanos begin = now();
  const bool pinned = is_pinned(here.storage().data());
  const bool asynchronous = pinned && non_blocking;
  if (in) copy_values(to, from, !asynchronous);
  transfer({index, current_stream(index), in ? Work::copy_in : Work::copy_out, static_cast<int64_t>(from.nbytes()),
            pinned, non_blocking, begin}, kCopy);
  if (!in) copy_values(to, from, !asynchronous);
}

void copy_between_devices(const at::Tensor& to, const at::Tensor& from) {
  const int source = from.device().index(), target = to.device().index();
  const Nanos begin = now();
  copy_values(to, from, false);
  pay_launch(begin);
  const int stream = current_stream(source);
  device(source).hold(stream, device(target).tail(current_stream(target)));
  const int64_t bytes = static_cast<int64_t>(from.nbytes());
  const Nanos end =
      device(source).launch(stream, {&kCopy, begin, copy_time(bytes, true), bytes, Work::copy_peer, true});
  device(target).hold(current_stream(target), end);
}

void copy_within(const at::Tensor& to, const at::Tensor& from) {
  const Nanos begin = now();
  const int index = to.device().index();
  copy_values(to, from, false);
  pay_launch(begin);
  Cost cost{static_cast<int64_t>(to.nbytes() + from.nbytes())};
  // A plain copy is a memcpy on the device; changing type or layout takes a kernel.
  const bool plain = to.dtype() == from.dtype() && to.is_contiguous() && from.is_contiguous();
  device(index).launch(current_stream(index), {&kCopy, begin, kernel_time(kCopy, cost), cost.bytes,
                                               plain ? Work::copy_within : Work::kernel});
}

at::Tensor& copy_(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (to.numel() == 0 || to.is_same(from)) return to;
  if (!to.is_cuda() || !from.is_cuda())
    copy_between_host_and_device(to, from, non_blocking);
  else if (to.device() != from.device())
    copy_between_devices(to, from);
  else
    copy_within(to, from);
  return to;
}

void read_back(int index, int64_t bytes, Nanos begin, const std::string& name) {
  transfer({index, current_stream(index), Work::copy_out, bytes, false, false, begin}, name);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  read_back(self.device().index(), static_cast<int64_t>(self.nbytes()), now(), kRead);
  at::AutoDispatchBelowADInplaceOrView no_autograd;
  return at::_ops::_local_scalar_dense::call(host_view(self));
}

}  // namespace

void set_sync_debug_mode(int mode) { debug_mode = mode; }
int sync_debug_mode() { return debug_mode; }

void read_size(int device) { read_back(device, 8, now(), kSize); }

void register_copies() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library.impl("copy_", TORCH_FN(copy_));
  library.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
}

}  // namespace standin
