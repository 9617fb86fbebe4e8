// Whole LSTM and GRU layers as one launch forward and one backward, as in cuDNN.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "alias.h"
#include "kernels.h"

namespace standin {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

const std::string kForward = "recurrent_layers", kBackward = "recurrent_layers_backward";

struct Layers {
  bool lstm, has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;

  Tensors run(const Tensor& input, const Tensors& hidden, const Tensors& weights) const {
    if (lstm) {
      auto [out, h, c] = at::lstm(input, hidden, weights, has_biases, layers, dropout, train, bidirectional, batch_first);
      return {out, h, c};
    }
    auto [out, h] = at::gru(input, hidden[0], weights, has_biases, layers, dropout, train, bidirectional, batch_first);
    return {out, h};
  }
};

// What one call reads: input, hidden states and weights, in this order.
struct Arguments {
  Tensor input;
  Tensors hidden, weights;

  Arguments on_host() const { return {host_view(input), host(hidden), host(weights)}; }
  Tensors all() const {
    Tensors list{input};
    list.insert(list.end(), hidden.begin(), hidden.end());
    list.insert(list.end(), weights.begin(), weights.end());
    return list;
  }
  static Arguments from(const Tensors& list, bool lstm) {
    const size_t states = lstm ? 2 : 1;
    return {list[0], {list.begin() + 1, list.begin() + 1 + states}, {list.begin() + 1 + states, list.end()}};
  }

  // Every weight meets every position of every sequence.
  double flops() const {
    double count = 0;
    for (const auto& weight : weights) count += weight.dim() == 2 ? static_cast<double>(weight.numel()) : 0;
    return 2 * count * static_cast<double>(input.size(0) * input.size(1));
  }
  bool computed() const { return is_computed(input.numel(), flops()); }

 private:
  static Tensors host(const Tensors& list) {
    Tensors made;
    for (const auto& tensor : list) made.push_back(host_view(tensor));
    return made;
  }
};

Tensor blank(const Tensor& like) {
  return like.defined() ? uncomputed(like.sizes(), at::detail::defaultStrides(like.sizes()), like.scalar_type(),
                                     like.device().index())
                        : Tensor();
}

Tensors blank_outputs(const Layers& layers, const Arguments& a) {
  auto sizes = a.input.sizes().vec();
  sizes[2] = a.hidden[0].size(2) * (layers.bidirectional ? 2 : 1);
  Tensors made{uncomputed(sizes, at::detail::defaultStrides(sizes), a.input.scalar_type(), a.input.device().index())};
  for (const auto& state : a.hidden) made.push_back(blank(state));
  return made;
}

// One position after another: each takes at least a kernel's fixed time.
void launch(const std::string& name, const Layers& layers, const Arguments& a, Nanos begin, double passes) {
  const auto positions = static_cast<double>(a.input.size(layers.batch_first ? 1 : 0) * layers.layers);
  const Cost cost{static_cast<int64_t>(a.input.nbytes()), passes * a.flops(), Math::mm, a.input.scalar_type(), positions};
  launch_kernel(name, a.input.device().index(), begin, cost);
}

Tensors to_device(Tensors tensors, int device) {
  for (auto& tensor : tensors) tensor = Aliases(device).to_device(tensor);
  return tensors;
}

// Dropout between the layers must be the same when backward runs forward again.
class SameNumbers {
 public:
  explicit SameNumbers(const Tensor& state) : generator_(at::detail::getDefaultCPUGenerator()), now_(read()) {
    generator_.set_state(state);
  }
  ~SameNumbers() { generator_.set_state(now_); }
  static Tensor state() { return at::detail::getDefaultCPUGenerator().get_state(); }

 private:
  Tensor read() const { return generator_.get_state(); }
  at::Generator generator_;
  Tensor now_;
};

Tensors compute(const Layers& layers, const Arguments& arguments) {
  const Nanos begin = now();
  at::AutoDispatchBelowADInplaceOrView no_autograd;
  Tensors made;
  if (arguments.computed()) {
    const auto host = arguments.on_host();
    made = to_device(layers.run(host.input, host.hidden, host.weights), arguments.input.device().index());
  } else {
    made = blank_outputs(layers, arguments);
  }
  launch(kForward, layers, arguments, begin, 1);
  return made;
}

struct Backward final : torch::autograd::Node {
  Backward(const Layers& layers, const Arguments& a)
      : layers(layers), arguments(Arguments::from(detached(a.all()), layers.lstm)), numbers(SameNumbers::state()) {}

  Tensors apply(Tensors&& gradients) override {
    const Nanos begin = now();
    Tensors made;
    if (arguments.computed())
      made = differentiate(gradients);
    else
      for (const auto& tensor : arguments.all()) made.push_back(blank(tensor));
    launch(kBackward, layers, arguments, begin, 2);
    return made;
  }

  void release_variables() override { arguments = {}; }

 private:
  static Tensors detached(Tensors tensors) {
    for (auto& tensor : tensors) tensor = tensor.detach();
    return tensors;
  }

  // Forward once more on the CPU, this time with a graph.
  Tensors differentiate(const Tensors& gradients) const {
    at::AutoGradMode with_graph(true);
    const SameNumbers same(numbers);
    auto leaves = arguments.on_host().all();
    for (auto& leaf : leaves) leaf.requires_grad_(true);
    const auto host = Arguments::from(leaves, layers.lstm);
    const auto all = layers.run(host.input, host.hidden, host.weights);
    Tensors outputs, seeds;
    for (size_t i = 0; i < all.size(); ++i)
      if (gradients[i].defined()) outputs.push_back(all[i]), seeds.push_back(host_view(gradients[i]));
    auto made = torch::autograd::grad(outputs, leaves, seeds, std::nullopt, false, true);
    return to_device(detached(std::move(made)), arguments.input.device().index());
  }

  const Layers layers;
  Arguments arguments;
  const Tensor numbers;
};

Tensors cast(const Tensors& tensors) {
  if (!at::autocast::is_autocast_enabled(at::kCUDA)) return tensors;
  Tensors made;
  for (const auto& tensor : tensors) made.push_back(tensor.to(at::autocast::get_autocast_dtype(at::kCUDA)));
  return made;
}

Tensors with_autograd(const Layers& layers, const Tensor& input, at::TensorList hidden, at::TensorList weights) {
  const Arguments arguments{cast({input})[0], cast(hidden.vec()), cast(weights.vec())};
  const Tensors all = arguments.all();
  if (!torch::autograd::compute_requires_grad(at::TensorList(all))) return compute(layers, arguments);
  auto node = c10::make_intrusive<Backward>(layers, arguments);
  node->set_next_edges(torch::autograd::collect_next_edges(at::TensorList(all)));
  Tensors made = compute(layers, arguments);
  torch::autograd::set_history(made, node);
  return made;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, at::TensorList hidden, at::TensorList weights, bool biases,
                                        int64_t layers, double dropout, bool train, bool both, bool batch_first) {
  auto made = with_autograd({true, biases, layers, dropout, train, both, batch_first}, input, hidden, weights);
  return {made[0], made[1], made[2]};
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hidden, at::TensorList weights, bool biases,
                               int64_t layers, double dropout, bool train, bool both, bool batch_first) {
  auto made = with_autograd({false, biases, layers, dropout, train, both, batch_first}, input, {hidden}, weights);
  return {made[0], made[1]};
}

}  // namespace

void register_recurrent_layers() {
  for (auto key : {c10::DispatchKey::AutogradCUDA, c10::DispatchKey::CUDA}) {
    static std::vector<torch::Library> libraries;
    libraries.emplace_back(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    libraries.back().impl("lstm.input", TORCH_FN(lstm));
    libraries.back().impl("gru.input", TORCH_FN(gru));
  }
}

}  // namespace standin
