// The device's work in torch.profiler.
#pragma once

namespace standin {

void register_profiler();

}  // namespace standin
