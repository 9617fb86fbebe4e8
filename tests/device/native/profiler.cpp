// The device's work in torch.profiler: a Kineto plug-in, in place of CUPTI on a real card.
#define FMT_HEADER_ONLY
#define KINETO_NAMESPACE libkineto
#include <kineto/IActivityProfiler.h>
#include <kineto/libkineto.h>
#include <kineto/output_base.h>
#include <unistd.h>

#include "profiler.h"
#include "speeds.h"
#include "timeline.h"
#include "trace.h"

namespace standin {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

const std::set<ActivityType> kActivities = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                            ActivityType::CUDA_RUNTIME};

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override { begin_ = now(); }
  void stop() override { end_ = now(); }
  std::vector<std::string> errors() override { return {}; }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void pushCorrelationId(uint64_t id) override { push_external(static_cast<int64_t>(id)); }
  void popCorrelationId() override { pop_external(); }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback operator_of, int64_t,
                    int64_t) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->span = libkineto::TraceSpan(begin_ + epoch_offset(), end_ + epoch_offset(), "stand-in device");
    for (int index = 0; index < speeds().devices; ++index)
      for (const auto& interval : device(index).history())
        if (interval.start < end_ && interval.end > begin_) add(interval, index, operator_of);
    for (const auto& span : waits())
      if (span.begin < end_ && span.end > begin_ && span.call && span.wait != Wait::data) add(span);
    for (const auto& activity : buffer_->activities) activity->log(logger);
  }

 private:
  GenericTraceActivity& make(ActivityType type, const std::string& name, Nanos begin, Nanos end) {
    buffer_->emplace_activity(buffer_->span, type, name);
    auto& made = *buffer_->activities.back();
    made.startTime = begin + epoch_offset();
    made.endTime = end + epoch_offset();
    return made;
  }

  GenericTraceActivity& on_host(const char* call, Nanos begin, Nanos end, int32_t thread) {
    auto& made = make(ActivityType::CUDA_RUNTIME, call, begin, end);
    made.device = getpid();
    made.resource = made.threadId = thread;
    return made;
  }

  void add(const Interval& i, int index, const libkineto::getLinkedActivityCallback& operator_of) {
    const auto* op = i.external ? operator_of(static_cast<int32_t>(i.external)) : nullptr;
    auto& call = on_host(runtime_call(i), i.launch_begin, i.launch_end, i.thread);
    link(call, i, op, true);
    const auto type = is_kernel(i) ? ActivityType::CONCURRENT_KERNEL : ActivityType::GPU_MEMCPY;
    auto& work = make(type, display_name(i), i.start, i.end);
    work.device = index;
    work.resource = trace_stream(i.stream);
    work.addMetadata("device", index);
    work.addMetadata("stream", trace_stream(i.stream));
    work.addMetadata("bytes", i.bytes);
    link(work, i, op, false);
  }

  void add(const HostSpan& span) { on_host(span.call, span.begin, span.end, span.thread); }

  static void link(GenericTraceActivity& activity, const Interval& i, const libkineto::ITraceActivity* op, bool start) {
    activity.id = static_cast<int32_t>(i.correlation);
    activity.linked = op;
    activity.flow.id = i.correlation;
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.flow.start = start;
    activity.addMetadata("correlation", i.correlation);
    if (i.external) activity.addMetadata("External id", i.external);
  }

  Nanos begin_ = 0, end_ = 0;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override {
    static const std::string name = "stand-in device";
    return name;
  }
  const std::set<ActivityType>& availableActivities() const override { return kActivities; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>& asked,
                                                                 const libkineto::Config&) override {
    for (auto type : kActivities)
      if (asked.count(type)) return std::make_unique<Session>();
    return nullptr;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType>& asked,
                                                                 const libkineto::Config& config) override {
    return configure(asked, config);
  }
};

}  // namespace

void register_profiler() {
  libkineto::api().registerProfilerFactory([] { return std::make_unique<Profiler>(); });
}

}  // namespace standin
