#include "observe/profile_trace.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "device/logical_device.h"
#include "observe/profile_summary.h"

namespace tandem {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

constexpr int host_process = 1, first_device_process = 2;
constexpr int step_row = 1;                // of a device's process
constexpr int64_t first_stream_row = 100;  // streams follow
constexpr int64_t most_kernels = 400000;   // a file that viewers still open

class TraceWriter {
 public:
  // Whole nanoseconds: a slice that ends where its parent ends must not end after it.
  void slice(int process, uint64_t row, const std::string& name, const char* category,
             const TimeSpan& span, const std::string& more = "") {
    const int64_t start = std::llround(span.start * 1e9), end = std::llround(span.end * 1e9);
    const int64_t lasted = std::max<int64_t>(0, end - start);
    event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"name":{},"cat":"{}","ts":{},"dur":{}{}}})",
                      process, row, quoted(name), category, micro(start), micro(lasted),
                      more.empty() ? "" : ",\"args\":{" + more + "}"));
  }
  void counter(int process, const char* name, double seconds, uint64_t bytes) {
    event(fmt::format(R"({{"ph":"C","pid":{},"name":"{}","ts":{},"args":{{"bytes":{}}}}})", process,
                      name, micro(std::llround(seconds * 1e9)), bytes));
  }
  void name_process(int process, const std::string& name) {
    event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})",
                      process, quoted(name)));
    event(fmt::format(
        R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", process,
        process));
  }
  void name_row(int process, uint64_t row, const std::string& name) {
    event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                      process, row, quoted(name)));
  }
  std::string finish(const std::string& about) {
    return "{\"displayTimeUnit\":\"ms\",\"otherData\":" + about + ",\"traceEvents\":[\n" + events_ +
           "\n]}\n";
  }

 private:
  static std::string micro(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  void event(const std::string& text) {
    if (!events_.empty()) events_ += ",\n";
    events_ += text;
  }
  std::string events_;
};

// The system's number of the thread of a replica, where operations were traced; else one that no
// thread has.
uint64_t row_of_replica(const OperationRecord& record, size_t rank) {
  const std::string name = fmt::format("replica-{}", rank);
  for (size_t i = 0; i < record.threads.size(); ++i)
    if (record.threads[i] == name) return record.thread_ids[i];
  return 1 + rank;
}

void add_steps(const Profile& profile, size_t rank, TraceWriter& writer, TraceCounts& counts) {
  const ProfiledReplica& replica = profile.replicas[rank];
  const int process = first_device_process + static_cast<int>(rank);
  const uint64_t row = row_of_replica(profile.operations, rank);
  for (const auto* steps : {&replica.timed, &replica.traced}) {
    for (const RecordedStep& step : *steps) {
      const std::string name = fmt::format("{} {}", step_word(profile), step.step);
      writer.slice(process, step_row, name, "step", step.device);
      writer.slice(host_process, row, name, "step", step.host);
      writer.counter(process, "memory", step.host.start, step.used);
      ++counts.steps;
      ++counts.readings;
      for (const RecordedPart& part : step.parts) {
        const std::string part_words = part_name(profile, part);
        writer.slice(process, step_row, part_words, "part", part.device);
        writer.slice(host_process, row, part_words, "part", part.host);
        writer.counter(process, "memory", part.host.end, part.used);
        ++counts.parts;
        ++counts.readings;
      }
    }
  }
}

void add_operations(const Profile& profile, TraceWriter& writer, TraceCounts& counts) {
  const OperationRecord& record = profile.operations;
  std::map<const LogicalDevice*, int> processes;
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank)
    processes[profile.replicas[rank].device] = first_device_process + static_cast<int>(rank);
  std::map<const LogicalDevice*, uint64_t> last;
  for (const TracedOperation& operation : record.operations) {
    std::string more;
    if (operation.device) more = "\"device\":" + quoted(operation.device->name());
    if (operation.flops > 0) more += fmt::format(",\"FLOP\":{:.0f}", operation.flops);
    if (operation.bytes > 0) more += fmt::format(",\"bytes\":{:.0f}", operation.bytes);
    if (!more.empty() && more.front() == ',') more.erase(0, 1);
    writer.slice(host_process, record.thread_ids[operation.thread], record.names[operation.name],
                 "operation", {operation.start, operation.end}, more);
    ++counts.operations;
    const auto process = processes.find(operation.device);
    if (process == processes.end() || last[operation.device] == operation.used) continue;
    last[operation.device] = operation.used;
    writer.counter(process->second, "memory", operation.end, operation.used);
    ++counts.readings;
  }
}

void add_kernels(const Profile& profile, TraceWriter& writer, TraceCounts& counts) {
  std::map<int, int> processes;  // by CUDA device
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank)
    processes.try_emplace(profile.replicas[rank].device->info().cuda_index,
                          first_device_process + static_cast<int>(rank));
  // A GPU that holds no replica prepares data.
  int next = first_device_process + static_cast<int>(profile.replicas.size());
  std::set<std::pair<int, int64_t>> rows;
  for (const TracedKernel& kernel : profile.kernels.kernels) {
    if (counts.kernels == most_kernels) {
      counts.left_out = static_cast<int64_t>(profile.kernels.kernels.size()) - most_kernels;
      break;
    }
    const auto [found, is_new] = processes.try_emplace(kernel.cuda_device, next);
    if (is_new) writer.name_process(next++, fmt::format("GPU {}", kernel.cuda_device));
    const auto row = static_cast<uint64_t>(first_stream_row + kernel.stream);
    if (rows.emplace(found->second, kernel.stream).second)
      writer.name_row(found->second, row, fmt::format("stream {}", kernel.stream));
    writer.slice(found->second, row, short_kernel_name(kernel.name),
                 kernel.copies ? "copy" : "kernel", {kernel.start, kernel.end},
                 "\"name\":" + quoted(kernel.name) +
                     (kernel.bytes > 0 ? fmt::format(",\"bytes\":{:.0f}", kernel.bytes) : ""));
    ++counts.kernels;
  }
}

}  // namespace

ProfileTrace make_trace(const Profile& profile) {
  TraceWriter writer;
  ProfileTrace trace;
  writer.name_process(host_process, "host");
  std::set<uint64_t> named;
  for (size_t rank = 0; rank < profile.replicas.size(); ++rank) {
    const int process = first_device_process + static_cast<int>(rank);
    const LogicalDevice& device = *profile.replicas[rank].device;
    writer.name_process(process, device.name() + " " + device.info().hardware);
    writer.name_row(process, step_row, step_word(profile));
    const uint64_t row = row_of_replica(profile.operations, rank);
    named.insert(row);
    writer.name_row(host_process, row, fmt::format("replica-{}", rank));
    add_steps(profile, rank, writer, trace.counts);
  }
  const OperationRecord& record = profile.operations;
  for (size_t i = 0; i < record.threads.size(); ++i)
    if (named.insert(record.thread_ids[i]).second)
      writer.name_row(host_process, record.thread_ids[i], record.threads[i]);
  add_operations(profile, writer, trace.counts);
  add_kernels(profile, writer, trace.counts);
  const TraceCounts& counts = trace.counts;
  trace.json = writer.finish(fmt::format(
      R"({{"program":"tandem profile","stage":{},"steps":{},"parts":{},"operations":{},"kernels":{},"kernels_left_out":{},"readings":{},"slices":{}}})",
      quoted(profile.stage), counts.steps, counts.parts, counts.operations, counts.kernels,
      counts.left_out, counts.readings, counts.slices()));
  return trace;
}

}  // namespace tandem
