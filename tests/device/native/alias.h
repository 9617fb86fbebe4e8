// Device tensors seen as CPU tensors over the same memory, and results of CPU kernels seen as device tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace standin {

// The lifetime of one operator call: tensors that share a storage share it on the other side too.
class Aliases {
 public:
  explicit Aliases(int device) : device_(device) {}

  // The argument with every device tensor replaced by its CPU alias.
  c10::IValue to_host(const c10::IValue& value);
  at::Tensor to_host(const at::Tensor& tensor);

  // The result with every CPU tensor replaced by a device tensor: the argument itself if it is one, a view of it if
  // they share memory, otherwise new device memory.
  c10::IValue to_device(const c10::IValue& value);
  at::Tensor to_device(const at::Tensor& tensor);

  // `out=` arguments that the CPU kernel has resized: give the device tensors the new size and memory.
  void take_over_resized();

 private:
  struct TensorPair {
    at::Tensor device, host;
  };
  struct StoragePair {
    c10::Storage device, host;
  };
  c10::Storage host_storage(const c10::Storage& storage);
  c10::Storage device_storage(const c10::Storage& storage);

  const int device_;
  std::vector<TensorPair> tensors_;
  std::vector<StoragePair> storages_;
};

// For hand-written kernels: one tensor, one way.
at::Tensor host_view(const at::Tensor& tensor);

}  // namespace standin
