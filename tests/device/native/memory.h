// Device memory (backed by host memory, counted like a caching allocator) and pinned memory.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace standin {

c10::DeviceAllocator& device_allocator();
c10::Allocator& pinned_allocator();

// Turns host memory that a CPU kernel has filled into memory of a device.
c10::DataPtr adopt(c10::DataPtr&& host, size_t bytes, int device);

// Makes a new block of device memory zero. Large ones give their pages back, which costs nothing for those untouched.
void zero(void* memory, size_t bytes);

bool is_pinned(const void* address);

}  // namespace standin
