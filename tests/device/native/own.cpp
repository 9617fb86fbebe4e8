// Operators that need more than a CPU kernel: memory and views.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <cstring>

#include "guard.h"
#include "kernels.h"
#include "memory.h"

namespace standin {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

int index_of(std::optional<at::Device> device) {
  return device && device->has_index() ? device->index() : current_device();
}

at::ScalarType type_of(std::optional<at::ScalarType> dtype) {
  return dtype.value_or(c10::typeMetaToScalarType(at::get_default_dtype()));
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  OnDevice on(index_of(device));
  return at::detail::empty_generic(size, &device_allocator(), kKeys, type_of(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  OnDevice on(index_of(device));
  return at::detail::empty_strided_generic(size, stride, &device_allocator(), kKeys, type_of(dtype));
}

void grow(const c10::Storage& storage, size_t bytes) {
  if (bytes <= storage.nbytes()) return;
  OnDevice on(storage.device().index());
  auto memory = device_allocator().allocate(bytes);
  if (storage.nbytes()) std::memcpy(memory.get(), storage.data(), storage.nbytes());
  storage.set_data_ptr_noswap(std::move(memory));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (format) impl->empty_tensor_restride(*format);
  grow(self.storage(), (self.storage_offset() + self.numel()) * self.element_size());
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                        at::IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  if (stride.empty() && !size.empty()) {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(offset);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage source) {
  const int64_t count = static_cast<int64_t>(source.nbytes()) / self.element_size();
  return set_storage(self, std::move(source), 0, {count}, {1});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

// Memory is never reused while work is pending, so there is nothing to record.
void record_stream(at::Tensor&, at::Stream) {}

// No library here has its own CTC loss.
template <typename Lengths>
bool use_library_ctc_loss(const at::Tensor&, const at::Tensor&, Lengths, Lengths, int64_t) {
  return false;
}

}  // namespace

void register_own_kernels() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library.impl("empty.memory_format", TORCH_FN(empty));
  library.impl("empty_strided", TORCH_FN(empty_strided));
  library.impl("resize_", TORCH_FN(resize_));
  library.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  library.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  library.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  library.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("record_stream", TORCH_FN(record_stream));
  for (const char* name : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
    library.impl(name, TORCH_FN(use_library_ctc_loss<at::IntArrayRef>));
    library.impl((std::string(name) + ".Tensor").c_str(), TORCH_FN(use_library_ctc_loss<const at::Tensor&>));
  }
}

}  // namespace standin
