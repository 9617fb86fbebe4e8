#include "kernels.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/library.h>

#include <cstring>
#include <unordered_set>

#include "alias.h"
#include "copies.h"
#include "guard.h"
#include "hooks.h"
#include "memory.h"
#include "shapes.h"
#include "speeds.h"
#include "timeline.h"

namespace standin {
namespace {

// The sizes of their results depend on the data: the host has to wait for them.
const std::unordered_set<std::string> kDataDependent = {
    "nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    "equal", "repeat_interleave", "bincount"};
// Boolean masks among their indices are first turned into positions, which is data-dependent too.
const std::unordered_set<std::string> kIndexing = {"index", "index_put", "index_put_", "_index_put_impl_",
                                                   "_unsafe_index", "_unsafe_index_put"};
// Operators that only query metadata, whatever their kernels look like.
const std::unordered_set<std::string> kNoKernel = {"is_set_to", "is_same_size", "_has_compatible_shallow_copy_type",
                                                   "is_pinned"};

bool is_tensor_like(const c10::TypePtr& type) {
  if (auto optional = type->cast<c10::OptionalType>()) return is_tensor_like(optional->getElementType());
  if (auto list = type->cast<c10::ListType>()) return is_tensor_like(list->getElementType());
  return type->kind() == c10::TypeKind::TensorType;
}

bool is_generator(const c10::TypePtr& type) {
  if (auto optional = type->cast<c10::OptionalType>()) return is_generator(optional->getElementType());
  return type->kind() == c10::TypeKind::GeneratorType;
}

// What the schema of an operator says, read once.
struct Traits {
  explicit Traits(const c10::FunctionSchema& schema)
      : name(schema.operator_name().name.substr(6)),
        math(math_of(name)),
        data_dependent(kDataDependent.count(name) > 0),
        indexes(kIndexing.count(name) > 0),
        arguments(schema.arguments().size()) {
    for (size_t i = 0; i < arguments; ++i) read_argument(schema.arguments()[i], static_cast<int>(i));
    for (const auto& result : schema.returns()) read_return(schema, result);
    launches = !views && !kNoKernel.count(name) && (makes_tensors || writes || data_dependent);
  }

  std::string name;
  Math math;
  bool data_dependent, indexes;
  bool views = false, writes = false, writes_out = false, makes_tensors = false, only_tensors = true;
  bool launches = false;
  size_t arguments;
  std::vector<int> tensors;  // positions of arguments that are or contain tensors
  std::vector<int> returned;  // per result: the argument it is, or -1
  int generator = -1, device = -1;

 private:
  void read_argument(const c10::Argument& a, int position) {
    if (is_tensor_like(a.type())) tensors.push_back(position);
    if (is_generator(a.type())) generator = position;
    if (a.name() == "device") device = position;
    if (a.alias_info() && a.alias_info()->isWrite()) writes = true;
    if (a.is_out()) writes_out = true;
  }

  void read_return(const c10::FunctionSchema& schema, const c10::Argument& result) {
    int same = -1;
    if (result.alias_info() && result.alias_info()->isWrite()) {
      for (int i : tensors) {
        const auto* info = schema.arguments()[i].alias_info();
        if (info && *info == *result.alias_info()) same = i;
      }
    } else if (result.alias_info()) {
      views = true;
    }
    returned.push_back(same);
    makes_tensors |= is_tensor_like(result.type());
    only_tensors &= is_tensor_like(result.type());
  }
};

// One call: how much it reads, and where it runs.
struct Call {
  int device = -1;
  int64_t elements = 0, bytes = 0;
  at::ScalarType dtype = at::kFloat;
  bool mask = false, host_tensor = false;

  void see(const at::Tensor& t, bool direct) {
    if (!t.defined()) return;
    elements = std::max(elements, t.numel());
    bytes += static_cast<int64_t>(t.nbytes());
    if (!t.is_cuda()) {
      host_tensor |= direct && t.dim() > 0;
      return;
    }
    if (device < 0) device = t.device().index(), dtype = t.scalar_type();
    TORCH_CHECK(!direct || t.device().index() == device, "Expected all tensors to be on the same device, but found "
                "at least two devices, cuda:", device, " and ", t.device(), "!");
  }

  void see(const c10::IValue& v) {
    if (v.isTensor()) return see(v.toTensor(), true);
    if (!v.isList()) return;
    for (const c10::IValue& element : v.toListRef())
      if (element.isTensor()) {
        const auto& t = element.toTensor();
        see(t, false);
        mask |= t.defined() && (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte);
        total_ += t.defined() ? t.numel() : 0;
      }
    elements = std::max(elements, total_);
  }

 private:
  int64_t total_ = 0;
};

class Kernel final : public c10::OperatorKernel {
 public:
  explicit Kernel(const c10::FunctionSchema& schema) : traits_(schema) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, c10::Stack* stack) {
    const Nanos begin = now();
    std::vector<c10::IValue> arguments(stack->end() - traits_.arguments, stack->end());
    stack->resize(stack->size() - traits_.arguments);
    const Call call = inspect(arguments);
    Cost cost{call.bytes, flops_of(traits_.math, arguments), traits_.math, call.dtype};
    auto results = may_skip(call, cost) ? skip(op, arguments, call.device) : std::nullopt;
    if (!results) results = compute(op, arguments, call.device);
    if (traits_.launches) {
      for (const auto& result : *results) cost.bytes += bytes_of(result);
      launch_kernel(traits_.name, call.device, begin, cost);
      if (traits_.data_dependent || (traits_.indexes && call.mask)) read_size(call.device);
    }
    stack->insert(stack->end(), results->begin(), results->end());
  }

 private:
  Call inspect(const std::vector<c10::IValue>& arguments) const {
    Call call;
    for (int i : traits_.tensors) call.see(arguments[i]);
    if (call.device < 0) call.device = asked_device(arguments);
    TORCH_CHECK(!call.host_tensor || traits_.indexes, "Expected all tensors to be on the same device, but found at "
                "least two devices, cuda:", call.device, " and cpu! (operator ", traits_.name, ")");
    return call;
  }

  int asked_device(const std::vector<c10::IValue>& arguments) const {
    if (traits_.device >= 0 && arguments[traits_.device].isDevice()) {
      const auto asked = arguments[traits_.device].toDevice();
      if (asked.has_index()) return asked.index();
    }
    return current_device();
  }

  bool may_skip(const Call& call, const Cost& cost) const {
    return traits_.launches && traits_.only_tensors && !traits_.data_dependent && !(traits_.indexes && call.mask) &&
           !is_computed(call.elements, cost.flops);
  }

  std::optional<std::vector<c10::IValue>> skip(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments,
                                               int device) {
    std::vector<c10::IValue> results;
    const bool in_place = traits_.writes && !traits_.writes_out;
    const Shapes* shapes = in_place ? nullptr : shapes_.find(op, arguments);
    if (!in_place && !shapes) return std::nullopt;
    for (size_t r = 0; r < traits_.returned.size(); ++r) {
      if (traits_.returned[r] < 0 && in_place) return std::nullopt;
      if (traits_.returned[r] < 0) {
        results.push_back(make(op.schema().returns()[r], (*shapes)[r], device));
        continue;
      }
      const auto& out = arguments[traits_.returned[r]];
      if (!in_place && out.toTensor().sizes() != (*shapes)[r].at(0).sizes) return std::nullopt;
      results.push_back(out);
    }
    return results;
  }

  static c10::IValue make(const c10::Argument& result, const std::vector<Shape>& shapes, int device) {
    const auto one = [device](const Shape& s) {
      return s.defined ? uncomputed(s.sizes, s.strides, s.dtype, device) : at::Tensor();
    };
    if (result.type()->kind() == c10::TypeKind::TensorType) return one(shapes.at(0));
    c10::List<at::Tensor> list;
    for (const auto& shape : shapes) list.push_back(one(shape));
    return list;
  }

  std::vector<c10::IValue> compute(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments,
                                   int device) {
    Aliases aliases(device);
    c10::Stack stack(arguments);
    for (int i : traits_.tensors) stack[i] = aliases.to_host(arguments[i]);
    if (traits_.device >= 0 && !stack[traits_.device].isNone()) stack[traits_.device] = c10::Device(c10::kCPU);
    if (traits_.generator >= 0) stack[traits_.generator] = generator_for(arguments[traits_.generator], device);
    {
      at::AutoDispatchBelowADInplaceOrView no_autograd;
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    }
    if (traits_.writes) aliases.take_over_resized();
    for (auto& result : stack) result = aliases.to_device(result);
    if (traits_.launches && traits_.only_tensors) shapes_.remember(arguments, stack);
    return stack;
  }

  static c10::IValue generator_for(const c10::IValue& asked, int device) {
    return host_generator(asked.isNone() ? default_generator(device) : asked.toGenerator());
  }

  static int64_t bytes_of(const c10::IValue& result) {
    Call call;
    call.see(result);
    return call.bytes;
  }

  const Traits traits_;
  ShapeMemory shapes_;
};

// Operators whose CPU kernel loops over tensors but which a GPU runs as one launch; and convolutions, which have no
// CUDA library to choose from here.
bool is_one_launch(const std::string& name) {
  return name.rfind("aten::_foreach_", 0) == 0 || name == "aten::convolution" || name == "aten::convolution_backward";
}

bool wanted(const c10::OperatorHandle& op) {
  if (!op.hasSchema() || op.operator_name().name.rfind("aten::", 0) != 0) return false;
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CUDA)) return false;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU) || is_one_launch(op.operator_name().name);
}

}  // namespace

bool is_computed(int64_t elements, double flops) {
  return elements <= speeds().compute_elements && flops <= speeds().compute_flops;
}

at::Tensor uncomputed(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype, int device) {
  OnDevice on(device);
  at::Tensor made = at::detail::empty_strided_generic(sizes, strides, &device_allocator(),
                                                      c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype);
  zero(made.mutable_data_ptr(), made.storage().nbytes());
  return made;
}

void launch_kernel(const std::string& name, int device_index, Nanos begin, const Cost& cost) {
  spin_until(begin + static_cast<Nanos>(speeds().launch_us * 1e3));
  device(device_index).launch(current_stream(device_index), {&name, begin, kernel_time(name, cost), cost.bytes});
}

void register_kernels() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !wanted(*op)) continue;
    const auto full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(op->schema())));
  }
}

}  // namespace standin
