// LSTM and GRU cells: torch fuses them for CUDA only, so their arithmetic is written out here.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ATen.h>
#include <torch/library.h>

#include "alias.h"
#include "kernels.h"

namespace standin {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

const std::string kLstm = "_thnn_fused_lstm_cell", kLstmBack = "_thnn_fused_lstm_cell_backward";
const std::string kGru = "_thnn_fused_gru_cell", kGruBack = "_thnn_fused_gru_cell_backward";

// Runs a cell on CPU aliases as one launch. Large cells are computed too: their matrices are much larger.
template <typename Compute>
auto one_launch(const std::string& name, const Tensor& on, Compute compute) {
  const Nanos begin = now();
  const int device = on.device().index();
  at::AutoDispatchBelowADInplaceOrView no_autograd;
  auto results = compute();
  Cost cost{static_cast<int64_t>(on.nbytes()), 0, Math::none, on.scalar_type()};
  for (auto& result : results) {
    if (!result.defined()) continue;
    cost.bytes += static_cast<int64_t>(result.nbytes());
    result = Aliases(device).to_device(result);
  }
  launch_kernel(name, device, begin, cost);
  return results;
}

Tensor host(const Optional& tensor) { return tensor ? host_view(*tensor) : Tensor(); }

Tensor gates_of(const Tensor& input, const Tensor& hidden, const Optional& input_bias, const Optional& hidden_bias) {
  Tensor gates = host_view(input) + host_view(hidden);
  if (input_bias && input_bias->defined()) gates = gates + host(input_bias) + host(hidden_bias);
  return gates;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const Tensor& hidden, const Tensor& cx,
                                        const Optional& input_bias, const Optional& hidden_bias) {
  auto made = one_launch(kLstm, input, [&] {
    auto parts = gates_of(input, hidden, input_bias, hidden_bias).chunk(4, 1);
    const Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(), out = parts[3].sigmoid();
    const Tensor cy = forget * host_view(cx) + in * cell;
    return std::vector<Tensor>{out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
  });
  return {made[0], made[1], made[2]};
}

std::tuple<Tensor, Tensor, Tensor> lstm_backward(const Optional& grad_hy, const Optional& grad_cy, const Tensor& cx,
                                                 const Tensor& cy, const Tensor& workspace, bool has_bias) {
  auto made = one_launch(kLstmBack, workspace, [&] {
    auto parts = host_view(workspace).chunk(4, 1);
    const Tensor in = parts[0], forget = parts[1], cell = parts[2], out = parts[3], squashed = host_view(cy).tanh();
    const Tensor to_hy = host(grad_hy).defined() ? host(grad_hy) : at::zeros_like(squashed);
    Tensor to_cy = to_hy * out * (1 - squashed * squashed);
    if (host(grad_cy).defined()) to_cy = to_cy + host(grad_cy);
    const Tensor gates = at::cat({to_cy * cell * in * (1 - in), to_cy * host_view(cx) * forget * (1 - forget),
                                  to_cy * in * (1 - cell * cell), to_hy * squashed * out * (1 - out)}, 1);
    return std::vector<Tensor>{gates, to_cy * forget, has_bias ? gates.sum(0) : Tensor()};
  });
  return {made[0], made[1], made[2]};
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hidden, const Tensor& hx, const Optional& input_bias,
                               const Optional& hidden_bias) {
  auto made = one_launch(kGru, input, [&] {
    Tensor from_input = host_view(input), from_hidden = host_view(hidden);
    if (input_bias && input_bias->defined()) {
      from_input = from_input + host(input_bias);
      from_hidden = from_hidden + host(hidden_bias);
    }
    auto i = from_input.chunk(3, 1), h = from_hidden.chunk(3, 1);
    const Tensor reset = (i[0] + h[0]).sigmoid(), update = (i[1] + h[1]).sigmoid(), fresh = (i[2] + reset * h[2]).tanh();
    const Tensor hy = fresh + update * (host_view(hx) - fresh);
    return std::vector<Tensor>{hy, at::cat({reset, update, fresh, host_view(hx), h[2]}, 1)};
  });
  return {made[0], made[1]};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_backward(const Tensor& grad_hy, const Tensor& workspace,
                                                                bool has_bias) {
  auto made = one_launch(kGruBack, workspace, [&] {
    auto parts = host_view(workspace).chunk(5, 1);
    const Tensor reset = parts[0], update = parts[1], fresh = parts[2], hx = parts[3], hidden = parts[4];
    const Tensor grad = host_view(grad_hy);
    const Tensor to_update = grad * (hx - fresh) * update * (1 - update);
    const Tensor to_fresh = grad * (1 - update) * (1 - fresh * fresh);
    const Tensor to_reset = to_fresh * hidden * reset * (1 - reset);
    const Tensor to_input = at::cat({to_reset, to_update, to_fresh}, 1);
    const Tensor to_hidden = at::cat({to_reset, to_update, to_fresh * reset}, 1);
    return std::vector<Tensor>{to_input, to_hidden, grad * update, has_bias ? to_input.sum(0) : Tensor(),
                               has_bias ? to_hidden.sum(0) : Tensor()};
  });
  return {made[0], made[1], made[2], made[3], made[4]};
}

}  // namespace

void register_recurrent_cells() {
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm));
  library.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_backward));
  library.impl("_thnn_fused_gru_cell", TORCH_FN(gru));
  library.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_backward));
}

}  // namespace standin
