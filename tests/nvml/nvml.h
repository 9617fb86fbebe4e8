/* Types of the stand-in: its control file (ours) and the NVML structures it fills (NVIDIA's public ABI).
 *
 * PROPERTIES is the list of steerable readings. tests/nvml/standin.py parses it from here, and mirrors
 * the control structures; gpumon_control_size() lets it check that both agree.
 */
#include <stdint.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
       NOT_LOADED = 9, TIMEOUT = 10, LOST = 15, MISMATCH = 18 };

/* name, default value in NVML's own unit, default status (0: answers, else the error code) */
#define PROPERTIES(P) \
  P(utilization, 42, 0) P(memory_utilization, 17, 0) P(encoder, 3, 0) P(decoder, 5, 0) \
  P(memory_total, 85899345920, 0) P(memory_used, 21474836480, 0) P(memory_reserved, 629145600, 0) \
  P(bar1_total, 137438953472, 0) P(bar1_used, 1048576, 0) \
  P(power, 251500, 0) P(power_limit, 400000, 0) P(power_default_limit, 400000, 0) \
  P(energy, 123456789, 0) P(power_swing, 20000, 0) P(power_samples, 50, 0) \
  P(utilization_swing, 8, 0) P(utilization_samples, 6, 0) P(clock_swing, 60, 0) P(clock_samples, 50, 0) \
  P(temperature, 61, 0) P(memory_temperature, 70, 0) \
  P(slowdown_temperature, 92, 0) P(shutdown_temperature, 97, 0) P(memory_max_temperature, 95, 0) \
  P(gpu_max_temperature, 87, 0) \
  P(sm_clock, 1755, 0) P(memory_clock, 2619, 0) P(graphics_clock, 1755, 0) P(video_clock, 1500, 0) \
  P(sm_clock_max, 1980, 0) P(memory_clock_max, 2619, 0) P(graphics_clock_max, 1980, 0) \
  P(video_clock_max, 1785, 0) P(pstate, 0, 0) P(fan, 35, 0) P(fans, 1, 0) P(throttle, 4, 0) \
  P(pcie_generation, 4, 0) P(pcie_generation_max, 5, 0) P(pcie_width, 16, 0) P(pcie_width_max, 16, 0) \
  P(pcie_tx, 1500000, 0) P(pcie_rx, 9500000, 0) P(pcie_delay, 20000, 0) P(pcie_replays, 2, 0) \
  P(pcie_tx_counter_rate, 0, 3) P(pcie_rx_counter_rate, 0, 3) \
  P(nvlink_links, 4, 0) P(nvlink_speed, 26562, 0) P(nvlink_tx_rate, 3000000, 0) P(nvlink_rx_rate, 2000000, 0) \
  P(ecc_mode, 1, 0) P(ecc_corrected_volatile, 7, 0) P(ecc_uncorrected_volatile, 1, 0) \
  P(ecc_corrected_aggregate, 70, 0) P(ecc_uncorrected_aggregate, 2, 0) \
  P(remapped_corrected, 3, 0) P(remapped_uncorrected, 1, 0) P(remapped_pending, 0, 0) P(remapped_failure, 0, 0) \
  P(retired_single, 4, 0) P(retired_double, 2, 0) P(retired_pending, 0, 0) \
  P(events, 0, 0) P(processes, 0, 0) P(process_utilization, 0, 0) \
  P(mig_mode, 0, 0) P(gpm, 1, 0) P(gpm_sm, 8150, 0) P(gpm_occupancy, 3320, 0) P(gpm_tensor, 2210, 0) \
  P(gpm_dram, 4480, 0) P(gpm_graphics, 9010, 0) P(gpm_fp64, 110, 0) P(gpm_fp32, 1520, 0) P(gpm_fp16, 730, 0) \
  P(policy_power, 12500000000, 0) P(policy_thermal, 1500000000, 0) P(policy_sync_boost, 0, 0) \
  P(policy_board_limit, 0, 0) P(policy_low_utilization, 7000000000, 0) P(policy_reliability, 0, 0) \
  P(slowdown_sw_thermal, 250000000, 0) P(slowdown_hw_thermal, 0, 0) P(slowdown_power_brake, 0, 0) \
  P(nvlink_crc_flit, 10, 0) P(nvlink_crc_data, 20, 0) P(nvlink_replay, 30, 0) P(nvlink_recovery, 0, 0) \
  P(nvlink_crc_flit_total, 0, 3) P(nvlink_crc_data_total, 86, 0) P(nvlink_replay_total, 0, 0) \
  P(nvlink_recovery_total, 6, 0) P(nvlink_dl_replay, 0, 3) P(nvlink_dl_recovery, 0, 3) P(nvlink_dl_crc, 0, 3) \
  P(nvlink_link_tx_rate, 750000, 0) P(nvlink_link_rx_rate, 500000, 0) \
  P(nvlink_link_tx_bytes_rate, 0, 3) P(nvlink_link_rx_bytes_rate, 0, 3) \
  P(recovery_action, 0, 0) P(fabric_state, 3, 0) P(fabric_health, 1, 0) P(virtualization, 0, 0) \
  P(license, 5, 3) P(vgpus, 0, 3) P(architecture, 9, 0) P(compute_major, 9, 0) P(compute_minor, 0, 0) \
  P(persistence, 1, 0) P(compute_mode, 0, 0) P(display, 0, 0) P(serial, 0, 0)

#define AS_ENUM(name, value, status) P_##name,
enum property_id { PROPERTIES(AS_ENUM) PROPERTY_COUNT };

#define MAX_GPUS 64
#define MAX_PROCESSES 32
#define MAX_MIG 7
#define MAX_XIDS 16
#define MAX_FUNCTIONS 160
#define EPOCHS 16

typedef struct { int64_t value, status; } Property;
typedef struct { uint32_t pid, kind, sm, gi, ci, unused; uint64_t memory; } Process;
typedef struct { uint32_t gi, ci; uint64_t used, total; char uuid[96], name[96]; } Mig;
typedef struct {
  int64_t error, hang, xid_head, process_count, mig_count, minor;
  int64_t xids[MAX_XIDS], xid_devices[MAX_XIDS]; /* code, and which GPU the event names */
  char name[96], uuid[96], bus_id[32];
  Process processes[MAX_PROCESSES];
  Mig mig[MAX_MIG];
  Property properties[PROPERTY_COUNT];
} Gpu;
typedef struct { char name[56]; int64_t calls; } Function;
typedef struct {
  int64_t magic, size, gpu_count, driver_error, hang, epoch, latch_count, cuda_version, library;
  char driver_version[80], nvml_version[80];
  Function functions[MAX_FUNCTIONS];
  Gpu gpus[MAX_GPUS];
} Control;

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef union { double d; unsigned u; unsigned long ul; unsigned long long ull; long long sll; int s; } Value;
typedef struct { uint32_t field, scope; int64_t timestamp, latency; unsigned type; int status; Value value; } Field;
typedef struct { unsigned long long time; Value value; } Sample;
typedef struct { unsigned pid; unsigned long long memory; unsigned gi, ci; } ProcessInfo;
typedef struct { unsigned pid; unsigned long long time; unsigned sm, memory, enc, dec; } ProcessSample;
typedef struct { void *device; unsigned long long type, data; unsigned gi, ci; } Event;
typedef struct { int registered[MAX_GPUS]; int64_t cursor[MAX_GPUS]; int epoch; } EventSet;
typedef struct { unsigned id; int status; double value; char *shortname, *longname, *unit; } GpmMetric;
typedef struct { int64_t values[8]; int set; } GpmSample;
typedef struct { unsigned version; uint8_t cluster[16]; unsigned status, clique; uint8_t state; unsigned mask;
                 uint8_t health; } Fabric;
typedef struct { unsigned code, state; char info[128], product[128]; unsigned enabled;
                 struct { unsigned year; uint16_t month, day, hour, minute, second; uint8_t status; } expiry; } Feature;
typedef struct { int supported; unsigned count; Feature features[3]; } Features;
typedef struct { unsigned version, count; GpmSample *first, *second; GpmMetric metrics[]; } GpmGet;

/* Field values: NVML's field id, the property behind it, and whether it is a counter that runs at that rate. */
static const struct { uint32_t id; int property, counter; } fields[] = {
  {3, P_ecc_corrected_volatile, 0}, {4, P_ecc_uncorrected_volatile, 0}, {5, P_ecc_corrected_aggregate, 0},
  {6, P_ecc_uncorrected_aggregate, 0}, {29, P_retired_single, 0}, {30, P_retired_double, 0},
  {31, P_retired_pending, 0}, {82, P_memory_temperature, 0}, {83, P_energy, 0}, {90, P_nvlink_speed, 0},
  {91, P_nvlink_links, 0}, {94, P_pcie_replays, 0}, {138, P_nvlink_tx_rate, 1}, {139, P_nvlink_rx_rate, 1},
  {142, P_remapped_corrected, 0}, {143, P_remapped_uncorrected, 0}, {144, P_remapped_pending, 0},
  {145, P_remapped_failure, 0}, {185, P_power, 0}, {186, P_power, 0},
  {38, P_nvlink_crc_flit_total, 0}, {45, P_nvlink_crc_data_total, 0}, {52, P_nvlink_replay_total, 0},
  {59, P_nvlink_recovery_total, 0}, {74, P_policy_power, 0}, {75, P_policy_thermal, 0},
  {76, P_policy_sync_boost, 0}, {77, P_policy_board_limit, 0}, {78, P_policy_low_utilization, 0},
  {79, P_policy_reliability, 0}, {230, P_recovery_action, 0}, {269, P_slowdown_sw_thermal, 0},
  {270, P_slowdown_hw_thermal, 0}, {271, P_slowdown_power_brake, 0},
  {197, P_pcie_tx_counter_rate, 1}, {198, P_pcie_rx_counter_rate, 1},
};

/* Readings of one link: by fields of its own (links 0 to 5, 6 to 11), or by a field whose scope is the link. */
static const struct { uint32_t first, more; int property; } lanes[] = {
  {32, 96, P_nvlink_crc_flit}, {39, 102, P_nvlink_crc_data}, {46, 108, P_nvlink_replay}, {53, 114, P_nvlink_recovery},
};
static const struct { uint32_t id; int property, counter; } scoped[] = {
  {138, P_nvlink_link_tx_rate, 1}, {139, P_nvlink_link_rx_rate, 1}, {161, P_nvlink_dl_replay, 0},
  {162, P_nvlink_dl_recovery, 0}, {163, P_nvlink_dl_crc, 0}, {202, P_nvlink_link_tx_bytes_rate, 1},
  {204, P_nvlink_link_rx_bytes_rate, 1},
};
#define ALL_LINKS 0xffffffffu

/* How the functions begin: count the call, find the device, hang or fail as told. */
#define COUNT() static int slot_ = -1; if (!attach()) return UNINITIALIZED; count_call(&slot_, __func__)
#define SYSTEM() COUNT(); { int state_ = driver_state(); if (state_) return state_; }
#define DEVICE(handle) Gpu *gpu; int mig = 0; COUNT(); \
  { int state_ = resolve(handle, &gpu, &mig); if (state_) return state_; } (void)mig
#define NEED(property) do { if (gpu->properties[P_##property].status) \
  return (int)gpu->properties[P_##property].status; } while (0)
#define VALUE(property) gpu->properties[P_##property].value
#define GETTER(function, property) \
  int function(void *d, unsigned *out) { DEVICE(d); NEED(property); *out = VALUE(property); return OK; }
#define WIDE_GETTER(function, property) \
  int function(void *d, unsigned long long *out) { DEVICE(d); NEED(property); *out = VALUE(property); return OK; }
#define MODE(function, property) int function(void *d, unsigned *current, unsigned *pending) { \
  DEVICE(d); NEED(property); *current = *pending = VALUE(property); return OK; }
#define TEXT(function, source, ...) \
  int function(__VA_ARGS__) { source; if (strlen(text) >= length) return TOO_SMALL; strcpy(out, text); return OK; }
