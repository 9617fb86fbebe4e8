#include "alias.h"

#include <ATen/core/List.h>
#include <c10/core/CPUAllocator.h>

#include "memory.h"

namespace standin {
namespace {

at::Tensor tensor_over(c10::Storage storage, const at::Tensor& like, c10::DispatchKey key) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  auto* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  if (like.is_conj()) made._set_conj(true);
  if (like.is_neg()) made._set_neg(true);
  return made;
}

bool may_hold_tensors(const c10::IValue& list) {
  auto element = list.toList().elementType();
  if (auto optional = element->cast<c10::OptionalType>()) element = optional->getElementType();
  return element->kind() == c10::TypeKind::TensorType;
}

template <typename Convert>
c10::IValue convert_list(const c10::IValue& value, Convert convert) {
  const auto list = value.toList();
  c10::impl::GenericList converted(list.elementType());
  converted.reserve(list.size());
  for (const c10::IValue& element : value.toListRef())
    converted.push_back(element.isTensor() ? c10::IValue(convert(element.toTensor())) : element);
  return converted;
}

}  // namespace

c10::Storage Aliases::host_storage(const c10::Storage& storage) {
  for (const auto& pair : storages_)
    if (pair.device.is_alias_of(storage)) return pair.host;
  c10::Storage host(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
      c10::DataPtr(const_cast<void*>(storage.data()), c10::Device(c10::kCPU)), c10::GetCPUAllocator(), true));
  storages_.push_back({storage, host});
  return host;
}

c10::Storage Aliases::device_storage(const c10::Storage& storage) {
  for (const auto& pair : storages_)
    if (pair.host.is_alias_of(storage)) return pair.device;
  auto* impl = storage.unsafeGetStorageImpl();
  auto memory = adopt(impl->set_data_ptr(c10::DataPtr()), storage.nbytes(), device_);
  c10::Storage device(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(memory), &device_allocator(), true));
  storages_.push_back({device, storage});
  return device;
}

at::Tensor Aliases::to_host(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  for (const auto& pair : tensors_)
    if (pair.device.is_same(tensor)) return pair.host;
  tensors_.push_back({tensor, tensor_over(host_storage(tensor.storage()), tensor, c10::DispatchKey::CPU)});
  return tensors_.back().host;
}

at::Tensor Aliases::to_device(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  for (const auto& pair : tensors_)
    if (pair.host.is_same(tensor)) return pair.device;
  return tensor_over(device_storage(tensor.storage()), tensor, c10::DispatchKey::CUDA);
}

c10::IValue Aliases::to_host(const c10::IValue& value) {
  if (value.isTensor()) return to_host(value.toTensor());
  if (value.isList() && may_hold_tensors(value))
    return convert_list(value, [this](const at::Tensor& t) { return to_host(t); });
  return value;
}

c10::IValue Aliases::to_device(const c10::IValue& value) {
  if (value.isTensor()) return to_device(value.toTensor());
  if (value.isList() && may_hold_tensors(value))
    return convert_list(value, [this](const at::Tensor& t) { return to_device(t); });
  return value;
}

void Aliases::take_over_resized() {
  for (auto& pair : storages_) {
    if (pair.host.data() == pair.device.data() || pair.host.data() == nullptr) continue;
    const size_t bytes = pair.host.nbytes();
    auto memory = adopt(pair.host.unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr()), bytes, device_);
    pair.device.set_data_ptr_noswap(std::move(memory));
    pair.device.set_nbytes(bytes);
  }
  for (auto& pair : tensors_)
    if (pair.host.sizes() != pair.device.sizes() || pair.host.strides() != pair.device.strides())
      pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(pair.host.sizes(), pair.host.strides(),
                                                               pair.host.storage_offset());
}

at::Tensor host_view(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  Aliases aliases(tensor.device().index());
  return aliases.to_host(tensor);
}

}  // namespace standin
