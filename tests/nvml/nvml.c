/* A stand-in for NVIDIA's libnvidia-ml.so.1, for tests: no GPU, every answer steered from outside.
 *
 * The answers live in a file mapped by both sides (GPUMON_NVML_CONTROL); tests/nvml/standin.py writes
 * it while a process under test reads. Where a call would hang, it sleeps until told otherwise; after
 * a driver reload old handles are invalid and every call says "uninitialized" until the next nvmlInit.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nvml.h"

#ifndef LIBRARY_VERSION
#define LIBRARY_VERSION 1
#endif

static Control *control;
static int initialised, epoch_at_init, count_at_init;
static char handles[EPOCHS][MAX_GPUS][1 + MAX_MIG];

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int attach(void) {
  const char *path = getenv("GPUMON_NVML_CONTROL");
  int file = path && !control ? open(path, O_RDWR) : -1;
  if (file < 0) return control != NULL;
  void *map = mmap(NULL, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (map != MAP_FAILED && ((Control *)map)->size == sizeof(Control)) control = map;
  return control != NULL;
}

static void count_call(int *slot, const char *name) {
  for (int i = *slot < 0 ? 0 : MAX_FUNCTIONS; i < MAX_FUNCTIONS && *slot < 0; i++) {
    if (!control->functions[i].name[0]) strncpy(control->functions[i].name, name, 55);
    if (!strcmp(control->functions[i].name, name)) *slot = i;
  }
  if (*slot >= 0) __atomic_add_fetch(&control->functions[*slot].calls, 1, __ATOMIC_RELAXED);
}

static int gpu_count(void) { return control->latch_count ? count_at_init : (int)control->gpu_count; }

static void sleep_while(volatile int64_t *flag) { while (*flag) usleep(2000); }

static int driver_state(void) {
  sleep_while(&control->hang);
  if (control->driver_error) return control->driver_error;
  return initialised && epoch_at_init == control->epoch ? OK : UNINITIALIZED;
}

/* Which GPU (and MIG instance, 0 for none) a handle means; handles die with a driver reload. */
static int resolve(void *handle, Gpu **gpu, int *mig) {
  int state = driver_state();
  if (state) return state;
  long at = (char *)handle - &handles[control->epoch % EPOCHS][0][0];
  if (at < 0 || at >= MAX_GPUS * (1 + MAX_MIG)) return INVALID;
  int index = at / (1 + MAX_MIG);
  if (index >= gpu_count()) return LOST;
  *gpu = &control->gpus[index];
  if (mig) *mig = at % (1 + MAX_MIG);
  sleep_while(&(*gpu)->hang);
  return (int)(*gpu)->error;
}

static void *handle_of(int index, int mig) { return &handles[control->epoch % EPOCHS][index][mig]; }

/* ---- library and system ---- */
int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  static int slot = -1;
  if (!attach()) return NOT_LOADED;
  count_call(&slot, __func__);
  sleep_while(&control->hang);
  if (control->driver_error) return control->driver_error;
  if (control->library && control->library != LIBRARY_VERSION) return MISMATCH;
  if (epoch_at_init != control->epoch) initialised = 0;
  if (!initialised++) count_at_init = control->gpu_count;
  epoch_at_init = control->epoch;
  return OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
  COUNT();
  sleep_while(&control->hang);
  if (!initialised) return UNINITIALIZED;
  initialised--;
  return OK;
}
const char *nvmlErrorString(int code) {
  static char text[32];
  snprintf(text, sizeof text, "NVML error %d", code);
  return text;
}
TEXT(nvmlSystemGetDriverVersion, SYSTEM(); char *text = control->driver_version, char *out, unsigned length)
TEXT(nvmlSystemGetNVMLVersion, SYSTEM(); char *text = control->nvml_version, char *out, unsigned length)
TEXT(nvmlSystemGetProcessName, SYSTEM(); (void)pid; const char *text = "python", unsigned pid, char *out, unsigned length)
int nvmlSystemGetCudaDriverVersion(int *out) { SYSTEM(); *out = control->cuda_version; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { return nvmlSystemGetCudaDriverVersion(out); }

/* ---- finding a device ---- */
int nvmlDeviceGetCount_v2(unsigned *out) { SYSTEM(); *out = gpu_count(); return OK; }
static int give_handle(int index, void **out) {
  if (index < 0 || index >= gpu_count()) return INVALID;
  sleep_while(&control->gpus[index].hang);
  if (control->gpus[index].error) return control->gpus[index].error;
  *out = handle_of(index, 0);
  return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out) { SYSTEM(); return give_handle(index, out); }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **out) {
  SYSTEM();
  for (int i = 0; i < gpu_count(); i++) if (!strcmp(control->gpus[i].uuid, uuid)) return give_handle(i, out);
  return NOT_FOUND;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **out) {
  SYSTEM();
  for (int i = 0; i < gpu_count(); i++) if (!strcasecmp(control->gpus[i].bus_id, id)) return give_handle(i, out);
  return NOT_FOUND;
}
int nvmlDeviceGetIndex(void *d, unsigned *out) { DEVICE(d); *out = gpu - control->gpus; return OK; }
int nvmlDeviceGetMinorNumber(void *d, unsigned *out) { DEVICE(d); *out = gpu->minor; return OK; }
TEXT(nvmlDeviceGetName, DEVICE(d); char *text = mig ? gpu->mig[mig - 1].name : gpu->name, void *d, char *out, unsigned length)
TEXT(nvmlDeviceGetUUID, DEVICE(d); char *text = mig ? gpu->mig[mig - 1].uuid : gpu->uuid, void *d, char *out, unsigned length)
TEXT(nvmlDeviceGetSerial, DEVICE(d); NEED(serial); const char *text = "0", void *d, char *out, unsigned length)
int nvmlDeviceGetPciInfo_v3(void *d, Pci *out) {
  DEVICE(d);
  memset(out, 0, sizeof *out);
  out->bus = 16 + (gpu - control->gpus);
  snprintf(out->legacy, sizeof out->legacy, "%.15s", gpu->bus_id + (strlen(gpu->bus_id) > 12 ? 4 : 0));
  strcpy(out->bus_id, gpu->bus_id);
  return OK;
}
int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor) {
  DEVICE(d); NEED(compute_major); *major = VALUE(compute_major); *minor = VALUE(compute_minor); return OK;
}
GETTER(nvmlDeviceGetArchitecture, architecture)
GETTER(nvmlDeviceGetPersistenceMode, persistence)
GETTER(nvmlDeviceGetComputeMode, compute_mode)
GETTER(nvmlDeviceGetVirtualizationMode, virtualization)
int nvmlDeviceGetActiveVgpus(void *d, unsigned *count, unsigned *out) {
  DEVICE(d); NEED(vgpus);
  unsigned room = *count;
  *count = VALUE(vgpus);
  return *count > room || (*count && !out) ? TOO_SMALL : OK;
}
int nvmlDeviceGetGridLicensableFeatures_v4(void *d, Features *out) {
  DEVICE(d); NEED(license);
  memset(out, 0, sizeof *out);
  out->supported = out->count = out->features[0].enabled = 1;
  out->features[0].state = VALUE(license) == 5;
  return OK;
}
int nvmlDeviceGetGpuFabricInfoV(void *d, Fabric *out) {
  DEVICE(d); NEED(fabric_state);
  if (out->version != 0x3000028 && out->version != 0x2000024) return INVALID;
  out->status = 0; out->state = VALUE(fabric_state);
  if (out->version == 0x3000028) { NEED(fabric_health); out->health = VALUE(fabric_health); }
  return OK;
}
GETTER(nvmlDeviceGetDisplayMode, display)
GETTER(nvmlDeviceGetDisplayActive, display)
int nvmlDeviceGetDriverModel(void *d, unsigned *a, unsigned *b) { DEVICE(d); (void)a; (void)b; return NOT_SUPPORTED; }
int nvmlDeviceGetDriverModel_v2(void *d, unsigned *a, unsigned *b) { return nvmlDeviceGetDriverModel(d, a, b); }

/* ---- readings ---- */
int nvmlDeviceGetUtilizationRates(void *d, unsigned *out) {
  DEVICE(d); if (mig) return NOT_SUPPORTED; NEED(utilization);
  out[0] = VALUE(utilization); out[1] = VALUE(memory_utilization); return OK;
}
#define CODER(function, property) int function(void *d, unsigned *out, unsigned *period) { \
  DEVICE(d); NEED(property); *out = VALUE(property); *period = 167000; return OK; }
CODER(nvmlDeviceGetEncoderUtilization, encoder)
CODER(nvmlDeviceGetDecoderUtilization, decoder)
static int memory_of(Gpu *gpu, int mig, Memory2 *out) {
  NEED(memory_used);
  out->total = mig ? gpu->mig[mig - 1].total : (uint64_t)VALUE(memory_total);
  out->used = mig ? gpu->mig[mig - 1].used : (uint64_t)VALUE(memory_used);
  out->reserved = mig ? 0 : VALUE(memory_reserved);
  out->free = out->total - out->used - out->reserved;
  return OK;
}
int nvmlDeviceGetMemoryInfo_v2(void *d, Memory2 *out) { DEVICE(d); NEED(memory_reserved); return memory_of(gpu, mig, out); }
int nvmlDeviceGetMemoryInfo(void *d, Memory *out) {
  DEVICE(d);
  Memory2 memory = {0};
  int status = memory_of(gpu, mig, &memory);
  if (!status) *out = (Memory){memory.total, memory.free, memory.used + memory.reserved};
  return status;
}
int nvmlDeviceGetBAR1MemoryInfo(void *d, Memory *out) {
  DEVICE(d); NEED(bar1_total);
  *out = (Memory){VALUE(bar1_total), VALUE(bar1_total) - VALUE(bar1_used), VALUE(bar1_used)}; return OK;
}
GETTER(nvmlDeviceGetPowerUsage, power)
GETTER(nvmlDeviceGetPowerManagementLimit, power_limit)
GETTER(nvmlDeviceGetEnforcedPowerLimit, power_limit)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, power_default_limit)
WIDE_GETTER(nvmlDeviceGetTotalEnergyConsumption, energy)
int nvmlDeviceGetTemperature(void *d, unsigned sensor, unsigned *out) {
  DEVICE(d); NEED(temperature); if (sensor) return INVALID; *out = VALUE(temperature); return OK;
}
int nvmlDeviceGetTemperatureV(void *d, unsigned *out) {
  DEVICE(d); NEED(temperature); if (out[1]) return INVALID; out[2] = VALUE(temperature); return OK;
}
int nvmlDeviceGetTemperatureThreshold(void *d, unsigned which, unsigned *out) {
  static const int of[] = {P_shutdown_temperature, P_slowdown_temperature, P_memory_max_temperature, P_gpu_max_temperature};
  DEVICE(d);
  if (which > 3) return NOT_SUPPORTED;
  *out = gpu->properties[of[which]].value;
  return gpu->properties[of[which]].status;
}
static int clock_of(Gpu *gpu, unsigned kind, unsigned *out, int max) {
  static const int of[2][4] = {{P_graphics_clock, P_sm_clock, P_memory_clock, P_video_clock},
                               {P_graphics_clock_max, P_sm_clock_max, P_memory_clock_max, P_video_clock_max}};
  if (kind > 3) return INVALID;
  *out = gpu->properties[of[max][kind]].value;
  return gpu->properties[of[max][kind]].status;
}
int nvmlDeviceGetClockInfo(void *d, unsigned kind, unsigned *out) { DEVICE(d); return clock_of(gpu, kind, out, 0); }
int nvmlDeviceGetMaxClockInfo(void *d, unsigned kind, unsigned *out) { DEVICE(d); return clock_of(gpu, kind, out, 1); }
GETTER(nvmlDeviceGetPerformanceState, pstate)
GETTER(nvmlDeviceGetFanSpeed, fan)
GETTER(nvmlDeviceGetNumFans, fans)
int nvmlDeviceGetFanSpeed_v2(void *d, unsigned fan, unsigned *out) { (void)fan; return nvmlDeviceGetFanSpeed(d, out); }
WIDE_GETTER(nvmlDeviceGetCurrentClocksEventReasons, throttle)
WIDE_GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, throttle)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation_max)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, pcie_width)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, pcie_width_max)
GETTER(nvmlDeviceGetPcieReplayCounter, pcie_replays)
int nvmlDeviceGetPcieThroughput(void *d, unsigned which, unsigned *out) {
  DEVICE(d); NEED(pcie_tx);
  usleep(VALUE(pcie_delay)); /* a real card measures for about 20 ms */
  *out = which ? VALUE(pcie_rx) : VALUE(pcie_tx);
  return OK;
}
int nvmlDeviceGetNvLinkState(void *d, unsigned link, unsigned *out) {
  DEVICE(d); NEED(nvlink_links); if (link >= VALUE(nvlink_links)) return NOT_SUPPORTED; *out = 1; return OK;
}
MODE(nvmlDeviceGetEccMode, ecc_mode)
int nvmlDeviceGetTotalEccErrors(void *d, unsigned kind, unsigned counter, unsigned long long *out) {
  static const int of[2][2] = {{P_ecc_corrected_volatile, P_ecc_corrected_aggregate},
                               {P_ecc_uncorrected_volatile, P_ecc_uncorrected_aggregate}};
  DEVICE(d);
  if (kind > 1 || counter > 1) return INVALID;
  *out = gpu->properties[of[kind][counter]].value;
  return gpu->properties[of[kind][counter]].status;
}
int nvmlDeviceGetRemappedRows(void *d, unsigned *cor, unsigned *unc, unsigned *pending, unsigned *failed) {
  DEVICE(d); NEED(remapped_corrected);
  *cor = VALUE(remapped_corrected); *unc = VALUE(remapped_uncorrected);
  *pending = VALUE(remapped_pending); *failed = VALUE(remapped_failure); return OK;
}

/* ---- field values: one call, many readings ---- */
static int64_t counter_at(int64_t us, int64_t per_second) { return (int64_t)(us % 1000000000000LL / 1e6 * per_second); }
static void answer(Gpu *gpu, Field *out, int property, int counter, int more) {
  int64_t value = gpu->properties[property].value;
  out->status = gpu->properties[property].status;
  out->value.ull = counter ? counter_at(out->timestamp, value) : value + more;
}
/* Of a link: every link has as many errors more than the first as its number says, so that they can be told apart. */
static int answer_link(Gpu *gpu, Field *out) {
  int64_t links = VALUE(nvlink_links);
  for (size_t f = 0; f < sizeof lanes / sizeof *lanes; f++) for (int link = 0; link < 12 && link < links; link++)
    if (out->field == (link < 6 ? lanes[f].first + link : lanes[f].more + link - 6))
      return answer(gpu, out, lanes[f].property, 0, link), 1;
  for (size_t f = 0; f < sizeof scoped / sizeof *scoped; f++)
    if (out->field == scoped[f].id && out->scope != ALL_LINKS && out->scope < links)
      return answer(gpu, out, scoped[f].property, scoped[f].counter, out->scope), 1;
  return 0;
}
int nvmlDeviceGetFieldValues(void *d, int count, Field *out) {
  DEVICE(d);
  for (int i = 0; i < count; i++) {
    out[i].status = NOT_SUPPORTED;
    out[i].timestamp = now_us();
    out[i].type = 3;
    if (answer_link(gpu, &out[i])) continue;
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
      if (fields[f].id == out[i].field) answer(gpu, &out[i], fields[f].property, fields[f].counter, 0);
  }
  return OK;
}

/* ---- samples between ticks: a steady saw around the reading ---- */
int nvmlDeviceGetSamples(void *d, unsigned kind, unsigned long long last, unsigned *type, unsigned *count, Sample *out) {
  static const int of[][3] = {[0] = {P_power, P_power_swing, P_power_samples},
    [1] = {P_utilization, P_utilization_swing, P_utilization_samples}, [5] = {P_sm_clock, P_clock_swing, P_clock_samples}};
  DEVICE(d);
  if (kind != 0 && kind != 1 && kind != 5) return NOT_SUPPORTED;
  Property *rate = &gpu->properties[of[kind][2]];
  if (rate->status) return rate->status;
  int64_t period = 1000000 / rate->value, now = now_us() / period, first = (int64_t)last / period + 1;
  if (now - first >= 120) first = now - 119;
  if (!out) { *count = 120; return OK; }
  if (first > now) return NOT_FOUND;
  unsigned wanted = now - first + 1;
  if (*count < wanted) { first += wanted - *count; wanted = *count; }
  for (unsigned i = 0; i < wanted; i++) {
    out[i].time = (first + i) * period;
    out[i].value.ull = gpu->properties[of[kind][0]].value + ((first + i) % 3 - 1) * gpu->properties[of[kind][1]].value;
  }
  *count = wanted;
  *type = 1;
  return OK;
}

/* ---- processes ---- */
static int processes_of(void *d, unsigned kind, unsigned *count, ProcessInfo *out) {
  Gpu *gpu; int mig = 0, state = resolve(d, &gpu, &mig);
  if (state) return state;
  NEED(processes);
  unsigned found = 0, room = *count;
  for (int i = 0; i < gpu->process_count; i++) {
    Process *p = &gpu->processes[i];
    if (p->kind != kind || (mig && (p->gi != gpu->mig[mig - 1].gi || p->ci != gpu->mig[mig - 1].ci))) continue;
    if (found < room && out) out[found] = (ProcessInfo){p->pid, p->memory, p->gi, p->ci};
    found++;
  }
  *count = found;
  return found > room || (found && !out) ? TOO_SMALL : OK;
}
#define PROCESSES(function, kind) \
  int function(void *d, unsigned *n, ProcessInfo *out) { COUNT(); return processes_of(d, kind, n, out); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 0)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)
int nvmlDeviceGetProcessUtilization(void *d, ProcessSample *out, unsigned *count, unsigned long long last) {
  DEVICE(d); NEED(process_utilization);
  unsigned long long now = now_us();
  unsigned found = gpu->process_count, room = *count;
  if (!found || now < last + 1000) return NOT_FOUND;
  *count = found;
  if (!out || room < found) return TOO_SMALL;
  for (unsigned i = 0; i < found; i++)
    out[i] = (ProcessSample){gpu->processes[i].pid, now, gpu->processes[i].sm, 0, 0, 0};
  return OK;
}

/* ---- events ---- */
int nvmlEventSetCreate(EventSet **out) {
  SYSTEM();
  *out = calloc(1, sizeof(EventSet));
  (*out)->epoch = control->epoch;
  return OK;
}
int nvmlEventSetFree(EventSet *set) { SYSTEM(); free(set); return OK; }
int nvmlDeviceGetSupportedEventTypes(void *d, unsigned long long *out) { DEVICE(d); NEED(events); *out = 0x1f; return OK; }
int nvmlDeviceRegisterEvents(void *d, unsigned long long types, EventSet *set) {
  DEVICE(d); NEED(events); (void)types;
  set->registered[gpu - control->gpus] = 1;
  set->cursor[gpu - control->gpus] = gpu->xid_head;
  return OK;
}
static int next_event(EventSet *set, Event *out) {
  for (int i = 0; i < MAX_GPUS; i++) {
    Gpu *gpu = &control->gpus[i];
    if (!set->registered[i] || set->cursor[i] >= gpu->xid_head) continue;
    int64_t at = set->cursor[i]++ % MAX_XIDS;
    *out = (Event){handle_of(gpu->xid_devices[at], 0), 8, gpu->xids[at], ~0u, ~0u};
    return OK;
  }
  return TIMEOUT;
}
int nvmlEventSetWait_v2(EventSet *set, Event *out, unsigned timeout_ms) {
  SYSTEM();
  for (unsigned waited = 0; ; waited += 2) {
    if (set->epoch != control->epoch) return UNINITIALIZED;
    if (next_event(set, out) == OK) return OK;
    if (waited >= timeout_ms) return TIMEOUT;
    usleep(2000);
  }
}

/* ---- MIG ---- */
MODE(nvmlDeviceGetMigMode, mig_mode)
int nvmlDeviceGetMaxMigDeviceCount(void *d, unsigned *out) { DEVICE(d); NEED(mig_mode); *out = MAX_MIG; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned index, void **out) {
  DEVICE(d); NEED(mig_mode);
  if (!VALUE(mig_mode) || index >= gpu->mig_count) return NOT_FOUND;
  *out = handle_of(gpu - control->gpus, index + 1);
  return OK;
}
int nvmlDeviceIsMigDeviceHandle(void *d, unsigned *out) { DEVICE(d); *out = mig > 0; return OK; }
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *d, void **out) {
  DEVICE(d); if (!mig) return INVALID; *out = handle_of(gpu - control->gpus, 0); return OK;
}
#define INSTANCE(function, member) int function(void *d, unsigned *out) { \
  DEVICE(d); if (!mig) return NOT_SUPPORTED; *out = gpu->mig[mig - 1].member; return OK; }
INSTANCE(nvmlDeviceGetGpuInstanceId, gi)
INSTANCE(nvmlDeviceGetComputeInstanceId, ci)

/* ---- GPM ---- */
int nvmlGpmQueryDeviceSupport(void *d, unsigned *out) { DEVICE(d); NEED(gpm); out[1] = VALUE(gpm); return OK; }
int nvmlGpmSampleAlloc(GpmSample **out) { SYSTEM(); *out = calloc(1, sizeof(GpmSample)); return OK; }
int nvmlGpmSampleFree(GpmSample *sample) { SYSTEM(); free(sample); return OK; }
int nvmlGpmSampleGet(void *d, GpmSample *out) {
  DEVICE(d); NEED(gpm); if (!VALUE(gpm)) return NOT_SUPPORTED;
  *out = (GpmSample){{VALUE(gpm_sm), VALUE(gpm_occupancy), VALUE(gpm_tensor), VALUE(gpm_dram), VALUE(gpm_graphics),
                      VALUE(gpm_fp64), VALUE(gpm_fp32), VALUE(gpm_fp16)}, 1};
  return OK;
}
int nvmlGpmMetricsGet(GpmGet *get) {
  static const unsigned ids[] = {2, 3, 5, 10, 1, 11, 12, 13};
  SYSTEM();
  if (!get->first->set || !get->second->set) return INVALID;
  for (unsigned i = 0; i < get->count; i++) {
    get->metrics[i].status = NOT_SUPPORTED;
    for (int k = 0; k < 8; k++) if (get->metrics[i].id == ids[k]) {
      get->metrics[i].status = OK;
      get->metrics[i].value = get->second->values[k] / 100.0;
    }
  }
  return OK;
}

size_t gpumon_control_size(void) { return sizeof(Control); }
