// Feeds the NVML stand-in (tests/nvml) from the device's timeline, so that both agree.
#pragma once

#include <string>

namespace standin {

// Keeps the readings in NVML's control file up to date until the process ends; once per process.
void start_feed(const std::string& control_file);
void stop_feed();

}  // namespace standin
