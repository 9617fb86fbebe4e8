#include "trace.h"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>

#include "speeds.h"

namespace standin {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

const char* copy_direction(const Interval& i) {
  switch (i.work) {
    case Work::copy_in: return i.pinned ? "HtoD (Pinned -> Device)" : "HtoD (Pageable -> Device)";
    case Work::copy_out: return i.pinned ? "DtoH (Device -> Pinned)" : "DtoH (Device -> Pageable)";
    case Work::copy_peer: return "PtoP (Device -> Device)";
    default: return "DtoD (Device -> Device)";
  }
}

class Writer {
 public:
  explicit Writer(const std::string& path) : file_(std::fopen(path.c_str(), "w")), base_(start_of_trace()) {
    if (!file_) throw std::runtime_error("cannot write " + path);
    std::fprintf(file_, "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": %lld,\n",
                 static_cast<long long>(base_));
    std::fprintf(file_, "\"deviceProperties\": [");
    for (int i = 0; i < speeds().devices; ++i)
      std::fprintf(file_, "%s{\"id\": %d, \"name\": \"stand-in device\"}", i ? ", " : "", i);
    std::fprintf(file_, "],\n\"traceEvents\": [");
  }
  ~Writer() {
    std::fprintf(file_, "\n]}\n");
    std::fclose(file_);
  }

  void work(const Interval& i, int device) {
    const std::string op = "aten::" + *i.name;
    event("cpu_op", op.c_str(), getpid(), i.thread, i.op_begin, i.launch_end);
    std::fprintf(file_, "{\"External id\": %u}}", i.correlation);
    event("cuda_runtime", runtime_call(i), getpid(), i.thread, i.launch_begin, i.launch_end);
    std::fprintf(file_, "{\"External id\": %u, \"correlation\": %u}}", i.correlation, i.correlation);
    const int stream = trace_stream(i.stream);
    event(category(i), display_name(i).c_str(), device, stream, i.start, i.end);
    std::fprintf(file_, "{\"External id\": %u, \"correlation\": %u, \"device\": %d, \"stream\": %d, \"bytes\": %lld}}",
                 i.correlation, i.correlation, device, stream, static_cast<long long>(i.bytes));
  }

  void wait(const HostSpan& span) {
    if (!span.call) return;
    const bool data = span.wait == Wait::data;
    event(data ? "user_annotation" : "cuda_runtime", span.call, getpid(), span.thread, span.begin, span.end);
    std::fprintf(file_, "{}}");
  }

  void step(size_t number, Nanos begin, Nanos end) {
    const std::string name = "ProfilerStep#" + std::to_string(number);
    event("user_annotation", name.c_str(), getpid(), getpid(), begin, end);
    std::fprintf(file_, "{}}");
  }

 private:
  static Nanos start_of_trace() { return (now() + epoch_offset()) / (86'400 * kSecond) * (86'400 * kSecond); }

  void event(const char* kind, const char* name, int process, int thread, Nanos begin, Nanos end) {
    const double at = static_cast<double>(begin + epoch_offset() - base_) / 1e3;
    std::fprintf(file_, "%s\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, "
                 "\"ts\": %.3f, \"dur\": %.3f, \"args\": ", first_ ? "" : ",", kind, name, process, thread, at,
                 static_cast<double>(end - begin) / 1e3);
    first_ = false;
  }

  std::FILE* file_;
  const Nanos base_;
  bool first_ = true;
};

}  // namespace

bool is_kernel(const Interval& i) { return i.work == Work::kernel || i.work == Work::exchange; }

const char* category(const Interval& i) { return is_kernel(i) ? "kernel" : "gpu_memcpy"; }

std::string display_name(const Interval& i) {
  if (i.work == Work::exchange) return "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
  return is_kernel(i) ? "standin::" + *i.name : std::string("Memcpy ") + copy_direction(i);
}

const char* runtime_call(const Interval& i) { return is_kernel(i) ? "cudaLaunchKernel" : "cudaMemcpyAsync"; }

int trace_stream(int stream) { return stream + 7; }

int64_t write_trace(const std::string& path, int64_t limit) {
  Writer writer(path);
  int64_t left_out = 0;
  for (int index = 0; index < speeds().devices; ++index) {
    const auto history = device(index).history();
    const size_t count = std::min<size_t>(history.size(), limit);
    for (size_t i = history.size() - count; i < history.size(); ++i) writer.work(history[i], index);
    left_out += static_cast<int64_t>(history.size() - count);
  }
  for (const auto& span : waits()) writer.wait(span);
  const auto marks = step_marks();
  for (size_t i = 1; i < marks.size(); ++i) writer.step(i, marks[i - 1], marks[i]);
  return left_out;
}

}  // namespace standin
