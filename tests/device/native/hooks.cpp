#include "hooks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <vector>

#include "guard.h"
#include "memory.h"
#include "speeds.h"
#include "timeline.h"

namespace standin {
namespace {

// A generator of the device: a CPU generator under the device's name.
struct DeviceGenerator final : c10::GeneratorImpl {
  DeviceGenerator(int index, at::Generator source)
      : c10::GeneratorImpl(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)),
                           c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        source(std::move(source)) {}

  void set_current_seed(uint64_t seed) override { source.set_current_seed(seed); }
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override { return 0; }
  uint64_t current_seed() const override { return source.current_seed(); }
  uint64_t seed() override { return source.seed(); }
  void set_state(const c10::TensorImpl& state) override { source.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return source.unsafeGetGeneratorImpl()->get_state();
  }
  DeviceGenerator* clone_impl() const override { return new DeviceGenerator(device().index(), source.clone()); }

  at::Generator source;
};

at::Generator make_generator(int index) {
  return at::make_generator<DeviceGenerator>(index, at::make_generator<at::CPUGeneratorImpl>());
}

int index_or_current(c10::DeviceIndex index) { return index < 0 ? current_device() : index; }

}  // namespace

at::Generator host_generator(const at::Generator& generator) {
  return static_cast<DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->source;
}

const at::Generator& default_generator(int device) {
  static auto* all = [] {
    auto* made = new std::vector<at::Generator>();
    for (int i = 0; i < speeds().devices; ++i) made->push_back(make_generator(i));
    return made;
  }();
  return all->at(device);
}

}  // namespace standin

// The registry must know the class by name, and it must be registered before the first query.
struct StandInHooks final : at::CUDAHooksInterface {
  explicit StandInHooks(at::CUDAHooksArgs) {}

  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return standin::speeds().devices > 0; }
  bool hasCUDA() const override { return isAvailable(); }
  bool hasCUDART() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return standin::used(); }

  c10::DeviceIndex deviceCount() const override { return static_cast<c10::DeviceIndex>(standin::speeds().devices); }
  int getNumGPUs() const override { return standin::speeds().devices; }
  c10::DeviceIndex current_device() const override { return getCurrentDevice(); }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(standin::current_device());
  }
  void setCurrentDevice(c10::DeviceIndex index) const override { standin::set_device(index); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    const auto before = getCurrentDevice();
    if (index >= 0) standin::set_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  void deviceSynchronize(c10::DeviceIndex index) const override { standin::device(index).synchronize(); }

  bool isPinnedPtr(const void* data) const override { return standin::is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &standin::pinned_allocator(); }
  c10::Allocator* getCUDADeviceAllocator() const override { return &standin::device_allocator(); }
  c10::Device getDeviceFromPtr(void*) const override { return {c10::kCUDA, getCurrentDevice()}; }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return standin::default_generator(standin::index_or_current(index));
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return standin::make_generator(standin::index_or_current(index));
  }
  std::string showConfig() const override { return "stand-in device of the gpumon tests\n"; }
};

namespace at {
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", StandInHooks)
}  // namespace at
