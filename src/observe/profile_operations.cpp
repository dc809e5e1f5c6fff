#include "observe/profile_operations.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "device/device_scope.h"
#include "device/logical_device.h"
#include "device/recorded_inputs.h"
#include "observe/profile_work.h"
#include "tandem/error.h"

namespace tandem {
namespace {

// One that is under way.
struct Open : at::ObserverContext {
  uint32_t name = 0;
  double start = 0, inside = 0;  // `inside`: seconds of the operations it called
  double flops = 0, bytes = 0, again = 0;
  bool leaf = true;
  uint64_t turn = 0;
  int64_t order = 0, parent = -1;
};

// What one thread wrote down. Written by it alone; read once tracing is off.
struct ThreadRecord {
  std::unordered_map<std::string, uint32_t> places;
  std::vector<std::string> names;
  std::vector<WorkRule> rules;
  std::vector<TracedOperation> operations;
  std::vector<Open*> open;
  uint64_t dropped = 0;
  int64_t begun = 0;
  std::string thread;
  uint64_t id = 0, number = 0;
};

std::string name_of_this_thread() {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return *name ? name : "thread";
}

}  // namespace

struct OperationTrace::State {
  Clock::time_point origin;
  size_t most = 0;
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadRecord>> threads;
  std::optional<at::CallbackHandle> handle;
  uint64_t turn = 0;

  ThreadRecord& mine();
  std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function);
  void end(const at::RecordFunction& function, Open& open);
  double now() const { return std::chrono::duration<double>(Clock::now() - origin).count(); }
};

namespace {
// Callbacks carry no state of their own. Traces are told apart by their turn, so that a thread
// notices that its record belongs to an earlier one.
std::atomic<OperationTrace::State*> g_trace{nullptr};
std::atomic<uint64_t> g_turns{0};
std::atomic<int> g_inside{0};
thread_local std::shared_ptr<ThreadRecord> t_record;
thread_local uint64_t t_turn = 0;

// The trace, held open: stop waits until nobody is inside.
class Visit {
 public:
  Visit() {
    g_inside.fetch_add(1);
    state_ = g_trace.load();
  }
  ~Visit() { g_inside.fetch_sub(1); }
  OperationTrace::State* operator->() const { return state_; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  OperationTrace::State* state_;
};
}  // namespace

ThreadRecord& OperationTrace::State::mine() {
  if (t_turn == turn) return *t_record;
  t_record = std::make_shared<ThreadRecord>();
  t_record->thread = name_of_this_thread();
  t_record->id = static_cast<uint64_t>(gettid());
  t_record->number = at::RecordFunction::currentThreadId();
  t_turn = turn;
  std::lock_guard lock(mutex);
  threads.push_back(t_record);
  return *t_record;
}

std::unique_ptr<at::ObserverContext> OperationTrace::State::begin(
    const at::RecordFunction& function) {
  ThreadRecord& record = mine();
  auto open = std::make_unique<Open>();
  open->turn = turn;
  const auto [place, is_new] =
      record.places.try_emplace(function.name(), static_cast<uint32_t>(record.names.size()));
  if (is_new) {
    record.names.push_back(place->first);
    record.rules.push_back(work_rule(place->first));
  }
  open->name = place->second;
  const WorkRule& rule = record.rules[open->name];
  open->flops = flops_of(rule, inputs_of(function));
  if (rule.kind == WorkKind::noted) {
    open->bytes = noted_bytes(inputs_of(function));
  } else if (rule.kind != WorkKind::none) {
    open->bytes = bytes_of(inputs_of(function));
  }
  if (rule.kind == WorkKind::convolution_backward && !inputs_of(function).empty())
    open->again = bytes_of(inputs_of(function).slice(0, 1));  // the gradient of its output
  open->order = record.begun++;
  if (!record.open.empty()) open->parent = record.open.back()->order;
  if (!record.open.empty() && rule.kind != WorkKind::none) record.open.back()->leaf = false;
  record.open.push_back(open.get());
  open->start = now();
  return open;
}

void OperationTrace::State::end(const at::RecordFunction& function, Open& open) {
  const double ended = now();
  if (open.turn != turn || t_turn != turn) return;  // begun under another trace
  ThreadRecord& record = *t_record;
  if (record.open.empty() || record.open.back() != &open) return;
  record.open.pop_back();
  const double took = ended - open.start;
  if (!record.open.empty()) record.open.back()->inside += took;
  if (record.operations.size() >= most) {
    ++record.dropped;
    return;
  }
  // Of one that calls others the bytes are theirs; what was noted is so.
  const WorkKind kind = record.rules[open.name].kind;
  const bool moves = kind == WorkKind::noted || (open.leaf && kind != WorkKind::none);
  const bool backward = kind == WorkKind::convolution_backward;
  LogicalDevice* device = DeviceScope::current();
  const std::vector<c10::IValue>& outputs = function.outputs();
  // What is written to a given tensor was counted among the inputs.
  const bool given = std::string_view(function.overload_name()).ends_with("out");
  const double written =
      given ? 0 : bytes_of(c10::ArrayRef<const c10::IValue>(outputs.data(), outputs.size()));
  record.operations.push_back({.name = open.name,
                               .device = device,
                               .start = open.start,
                               .end = ended,
                               .self = took - open.inside,
                               .flops = open.flops,
                               .bytes = moves ? open.bytes + written : 0,
                               .convolved = backward ? open.bytes + written + open.again : 0,
                               .used = device ? device->memory().used() : 0,
                               .order = open.order,
                               .parent = open.parent});
}

OperationTrace::OperationTrace(Clock::time_point origin, size_t most)
    : state_(std::make_unique<State>()) {
  state_->origin = origin;
  state_->most = most;
}

OperationTrace::~OperationTrace() {
  if (state_->handle) stop();
}

void OperationTrace::start() {
  State* none = nullptr;
  state_->turn = ++g_turns;
  if (!g_trace.compare_exchange_strong(none, state_.get()))
    throw Error(ErrorKind::internal, "operations are already being traced in this process");
  state_->handle = at::addGlobalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
            const Visit trace;
            return trace ? trace->begin(function) : nullptr;
          },
          [](const at::RecordFunction& function, at::ObserverContext* context) {
            const Visit trace;
            if (trace && context) trace->end(function, static_cast<Open&>(*context));
          })
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperationRecord OperationTrace::stop() {
  if (!state_->handle)
    throw Error(ErrorKind::internal, "operations were not being traced in this process");
  at::removeCallback(*state_->handle);
  state_->handle.reset();
  g_trace = nullptr;
  while (g_inside.load() != 0) std::this_thread::yield();
  OperationRecord all;
  std::unordered_map<std::string, uint32_t> places;
  std::lock_guard lock(state_->mutex);
  for (const auto& record : state_->threads) {
    std::vector<uint32_t> name_of;
    for (const std::string& name : record->names) {
      const auto [place, is_new] =
          places.try_emplace(name, static_cast<uint32_t>(all.names.size()));
      if (is_new) all.names.push_back(name);
      name_of.push_back(place->second);
    }
    for (TracedOperation operation : record->operations) {
      operation.name = name_of[operation.name];
      operation.thread = static_cast<uint32_t>(all.threads.size());
      all.operations.push_back(operation);
    }
    record->operations = {};  // the thread may keep its record for long
    all.dropped += record->dropped;
    all.threads.push_back(record->thread);
    all.thread_ids.push_back(record->id);
    all.thread_numbers.push_back(record->number);
  }
  state_->threads.clear();
  return all;
}

}  // namespace tandem
