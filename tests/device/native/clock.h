// The stand-in's clock: CLOCK_MONOTONIC, the same for the host and the modelled device.
#pragma once

#include <cstdint>

namespace standin {

using Nanos = int64_t;

Nanos now();

// The host thread does nothing until `when`; other Python threads run in the meantime.
void wait_until(Nanos when);

// The host thread is busy until `when`: the cost of a launch.
void spin_until(Nanos when);

// What to add to a monotonic time to get the time since 1970, which trace files use.
Nanos epoch_offset();

int32_t thread_id();

}  // namespace standin
