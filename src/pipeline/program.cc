#include "pipeline/program.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "pipeline/drawing.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/reservation.h"
#include "pipeline/run.h"
#include "pipeline/similar.h"
#include "pipeline/stop_on_signal.h"
#include "pipeline/words.h"
#include "pipeline/worker.h"

namespace baton::pipeline {
namespace {

const std::vector<std::string> kCommands = {"run", "validate", "plan", "graph"};
const std::vector<std::string> kFlags = {"--instance", "--total",    "--run", "--jobs",
                                         "--cap",      "--reserved", "--help"};
constexpr char kHelp[] =
    "Runs a pipeline, or looks at it: run (which need not be said), validate, plan, graph.\n\n"
    "  --jobs N        modules at a time; as many as there are processors, if not said otherwise\n"
    "  --cap NAME      what this machine can do, besides linux; may be repeated\n"
    "  --instance I    which instance this is: 0 is the master, the others are workers\n"
    "  --total N       how many there are\n"
    "  --run ID        what the run is called, the same for all instances\n"
    "  --reserved      a worker that runs only what names one of its --cap\n\n"
    "BATON_INSTANCE, BATON_TOTAL, BATON_RUN and BATON_CAPS say the same. Exit codes: 0 all went well, 1 a\n"
    "module failed, 2 the pipeline or the command line makes no sense, 3 cancelled, 4 the coordinator was "
    "lost.\n";

template <class T>
Status read_number(const std::string& what, const std::string& text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error == std::errc{} && end == text.data() + text.size()) return {};
  return failure(Errc::invalid_request, what + " takes a number, and '" + text + "' is none");
}

void add_all(std::vector<std::string>& to, const std::string& list) {
  for (std::size_t from = 0; from < list.size();) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    if (comma > from) to.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
}

Status set(DistributedOptions& options, const std::string& flag, const std::string& value) {
  if (flag == "--instance") return read_number(flag, value, options.instance_index);
  if (flag == "--total") return read_number(flag, value, options.total_instances);
  if (flag == "--jobs") return read_number(flag, value, options.slots);
  if (flag == "--run") options.run_id = value;
  if (flag == "--cap") add_all(options.capabilities, value);
  return {};
}

void tell(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

// Says what happens, plainly.
class Teller : public RunObserver {
 public:
  void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
    if (!is_final(report.status)) return;
    const std::string& why =
        report.failure.kind != FailureKind::none ? report.failure.message : report.reason;
    std::printf("%s %s%s%s\n", report.id.c_str(), std::string(word(report.status)).c_str(),
                why.empty() ? "" : ": ", why.c_str());
  }
  void said(const LogLine& line) override {
    std::printf("%s | %s\n", line.module.c_str(), line.text.c_str());
  }
  void noticed(const std::string& text) override { std::printf("! %s\n", text.c_str()); }
  void stopping(std::size_t modules) override {
    tell("stopping " + counted(modules, "module") + "; Ctrl-C again ends it at once");
  }
  void ended(const RunReport& report) override {
    std::printf("%s %s after %lld ms\n", report.pipeline.c_str(), std::string(word(report.outcome)).c_str(),
                static_cast<long long>(report.took.ms));
    std::fflush(stdout);
  }
};

Result<std::shared_ptr<DistributedCoordinator>> coordinator_of(const Pipeline& pipeline) {
  if (pipeline.factory()) {
    auto made = pipeline.factory()->create({});
    if (!made) return std::unexpected(made.error());
    return std::shared_ptr<DistributedCoordinator>(std::move(*made));
  }
  if (pipeline.coordinator()) return pipeline.coordinator();
  static MemoryExchange exchange;
  tell("warning: no coordinator was given, so instances in other processes are not reached");
  return std::make_shared<MemoryCoordinator>(exchange);
}

// What modules declare, as far as this machine has it in its environment.
Secrets secrets_of(const Definition& definition) {
  Secrets secrets;
  for (const ModuleSpec& spec : definition.modules) {
    for (const std::string& name : spec.secrets) {
      if (const char* value = std::getenv(name.c_str())) secrets.add(name, value);
    }
  }
  return secrets;
}

int be_master(const Graph& graph, RunOptions options) {
  const RunReport report = run(graph, std::move(options));
  if (report.refusal) tell(report.refusal->message);
  return exit_code(report.outcome);
}

int be_worker(const Graph& graph, DistributedCoordinator& coordinator, const DistributedOptions& options,
              const std::stop_token& stop) {
  WorkerOptions worker{.index = options.instance_index, .slots = options.slots};
  worker.site.name = "instance-" + std::to_string(options.instance_index);
  worker.site.capabilities = options.capabilities;
  worker.is_reserved = options.is_reserved;
  worker.site.run = options.run_id;
  worker.site.secrets = secrets_of(graph.definition());
  worker.notice = tell;
  const WorkerReport report = run_worker(graph, coordinator, worker, stop);
  if (report.end != WorkerEnd::closed) tell(report.reason);
  return exit_code(report.end);
}

}  // namespace

Result<ProgramOptions> program_options(const Pipeline& pipeline, const std::vector<std::string>& words,
                                       const std::function<const char*(const char*)>& variable) {
  ProgramOptions options{.distributed = pipeline.distributed().value_or(DistributedOptions{})};
  for (const auto& [name, flag] : {std::pair("BATON_INSTANCE", "--instance"),
                                   {"BATON_TOTAL", "--total"},
                                   {"BATON_RUN", "--run"},
                                   {"BATON_CAPS", "--cap"}}) {
    const char* value = variable(name);
    if (value == nullptr) continue;
    if (auto done = set(options.distributed, flag, value); !done)
      return failure(done.error().code, std::string(name) + ": " + done.error().message);
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-")) {
      if (std::ranges::find(kCommands, words[i]) == kCommands.end())
        return failure(Errc::invalid_request,
                       "there is no command '" + words[i] + "'" + suggestion(words[i], kCommands));
      options.command = words[i];
      continue;
    }
    if (std::ranges::find(kFlags, words[i]) == kFlags.end())
      return failure(Errc::invalid_request,
                     "there is no option '" + words[i] + "'" + suggestion(words[i], kFlags));
    if (words[i] == "--help") {
      options.command = "help";
      return options;
    }
    if (words[i] == "--reserved") {
      options.distributed.is_reserved = true;
      continue;
    }
    if (i + 1 == words.size()) return failure(Errc::invalid_request, words[i] + " needs a value");
    if (auto done = set(options.distributed, words[i], words[i + 1]); !done)
      return std::unexpected(done.error());
    ++i;
  }
  const DistributedOptions& instances = options.distributed;
  if (instances.total_instances == 0) return failure(Errc::invalid_request, "--total is 1 or more");
  if (instances.instance_index < 0 ||
      static_cast<std::uint32_t>(instances.instance_index) >= instances.total_instances) {
    return failure(Errc::invalid_request, "instance " + std::to_string(instances.instance_index) +
                                              " is not one of " + std::to_string(instances.total_instances) +
                                              ": they count from 0");
  }
  if (instances.is_reserved && instances.instance_index == 0)
    return failure(Errc::invalid_request, "--reserved is for workers, and instance 0 is the master");
  if (const auto checked = check_reserved(canonical(instances.capabilities));
      instances.is_reserved && !checked)
    return std::unexpected(checked.error());
  return options;
}

int run_program(const Pipeline& pipeline, const ProgramOptions& options, RunObserver* observer,
                const std::stop_token& stop) {
  if (options.command == "help") return std::printf("%s", kHelp), 0;
  const auto graph = Graph::of(pipeline.definition());
  if (!graph) {
    for (const Problem& problem : graph.error()) tell(describe(problem));
    return kExitInvalid;
  }
  if (options.command == "validate") return std::printf("%s\n", counted(graph->size(), "module").c_str()), 0;
  if (options.command == "graph") return std::printf("%s", dot_of(*graph).c_str()), 0;
  if (options.command == "plan") {
    for (const NodeIndex node : graph->in_order()) std::printf("%s\n", (*graph)[node].id.c_str());
    return 0;
  }
  DistributedOptions instance = options.distributed;
  if (instance.slots == 0) instance.slots = std::max(1U, std::thread::hardware_concurrency());
  for (const std::string& name : detected_capabilities()) instance.capabilities.push_back(name);
  RunOptions run{.run = instance.run_id, .jobs = instance.slots};
  run.site.capabilities = instance.capabilities;
  run.site.secrets = secrets_of(graph->definition());
  run.stop = stop;
  Teller teller;
  run.observer = observer ? observer : &teller;
  if (instance.total_instances <= 1) return be_master(*graph, std::move(run));

  auto coordinator = coordinator_of(pipeline);
  if (!coordinator)
    return tell("the coordinator: " + coordinator.error().message), exit_code(RunOutcome::coordination_lost);
  if (instance.instance_index > 0) return be_worker(*graph, **coordinator, instance, stop);
  run.coordinator = coordinator->get();
  run.workers_expected = instance.total_instances - 1;
  return be_master(*graph, std::move(run));
}

int Pipeline::main(int argc, char** argv) const {
  const auto options = program_options(*this, std::vector<std::string>(argv + 1, argv + argc),
                                       [](const char* name) { return std::getenv(name); });
  const StopOnSignal signals;
  if (options) return run_program(*this, *options, nullptr, signals.token());
  tell(options.error().message);
  return kExitInvalid;
}

}  // namespace baton::pipeline
