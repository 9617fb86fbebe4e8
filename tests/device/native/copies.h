// Copies between host and device, and the points at which the host must wait for the device.
#pragma once

namespace standin {

// What torch.cuda.set_sync_debug_mode requests when an operator makes the host wait: 0 nothing, 1 a warning, 2 an
// error.
void set_sync_debug_mode(int mode);
int sync_debug_mode();

// The host reads a size that the device computes, and waits for it.
void read_size(int device);

}  // namespace standin
