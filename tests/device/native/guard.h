// Which device and stream a thread is on.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>

namespace standin {

int current_device();
void set_device(int index);
int current_stream(int device);
void set_stream(int device, int stream);
int next_pool_stream(bool high_priority);

c10::Stream stream_of(int device, int stream);

// New memory in this scope belongs to `device`.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(current_device()) { set_device(device); }
  ~OnDevice() { set_device(before_); }

 private:
  const int before_;
};

// Milliseconds between two recorded events, by their ids.
double elapsed_ms(intptr_t first, intptr_t second);

void register_guard();

}  // namespace standin
