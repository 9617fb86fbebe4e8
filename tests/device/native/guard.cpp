#include "guard.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>

#include "speeds.h"
#include "timeline.h"

namespace standin {
namespace {

thread_local int device_now = 0;
thread_local std::array<int, 64> stream_now{};

struct Event {
  std::atomic<Nanos> at{0};
};

Event* as_event(void* event) { return static_cast<Event*>(event); }

int stream_number(const c10::Stream& stream) { return static_cast<int>(stream.id()); }

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::DeviceIndex deviceCount() const noexcept override { return static_cast<c10::DeviceIndex>(speeds().devices); }

  c10::Device getDevice() const override { return {c10::kCUDA, static_cast<c10::DeviceIndex>(device_now)}; }
  void setDevice(c10::Device d) const override {
    if (d.index() >= 0) set_device(d.index());
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.index() >= 0) device_now = d.index();
  }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device before = getDevice();
    setDevice(d);
    return before;
  }

  c10::Stream getStream(c10::Device d) const override { return stream_of(index(d), current_stream(index(d))); }
  c10::Stream getDefaultStream(c10::Device d) const override { return stream_of(index(d), 0); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool high) const override {
    return stream_of(index(d), next_pool_stream(high));
  }
  c10::Stream getNewStream(c10::Device d, int priority) const override {
    return getStreamFromGlobalPool(d, priority < 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto before = getStream(stream.device());
    set_stream(stream.device_index(), stream_number(stream));
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return reinterpret_cast<void*>(static_cast<intptr_t>(stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return now() >= device(stream.device_index()).tail(stream_number(stream));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    device(stream.device_index()).synchronize(stream_number(stream), "cudaStreamSynchronize");
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override { device(index).synchronize(); }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = new Event();
    as_event(*event)->at = device(stream.device_index()).mark(stream_number(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) device(stream.device_index()).hold(stream_number(stream), as_event(event)->at);
  }
  bool queryEvent(void* event) const override { return !event || now() >= as_event(event)->at; }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    const Nanos begin = now();
    wait_until(as_event(event)->at);
    record_wait({begin, now(), "cudaEventSynchronize", thread_id(), -1, 0, Wait::sync});
  }
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    return elapsed_ms(reinterpret_cast<intptr_t>(first), reinterpret_cast<intptr_t>(second));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete as_event(event); }

 private:
  static int index(c10::Device d) { return d.index() < 0 ? device_now : d.index(); }
};

}  // namespace

int current_device() { return device_now; }

void set_device(int index) {
  TORCH_CHECK(index >= 0 && index < speeds().devices, "CUDA error: invalid device ordinal ", index);
  device_now = index;
}

int current_stream(int device) { return stream_now.at(device); }
void set_stream(int device, int stream) { stream_now.at(device) = stream; }

int next_pool_stream(bool high_priority) {
  static std::atomic<int> low{0}, high{0};
  return high_priority ? 33 + high++ % 32 : 1 + low++ % 32;
}

c10::Stream stream_of(int device, int stream) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)), stream);
}

double elapsed_ms(intptr_t first, intptr_t second) {
  const Nanos from = reinterpret_cast<Event*>(first)->at, to = reinterpret_cast<Event*>(second)->at;
  return static_cast<double>(to - from) / 1e6;
}

void register_guard() { static c10::impl::DeviceGuardImplRegistrar registrar(c10::kCUDA, new Guard()); }

}  // namespace standin
