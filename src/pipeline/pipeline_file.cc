#include "pipeline/pipeline_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/builder.h"
#include "pipeline/file_artifacts.h"
#include "pipeline/file_commands.h"
#include "pipeline/file_matrix.h"
#include "pipeline/file_module.h"
#include "pipeline/file_parameters.h"
#include "pipeline/file_references.h"
#include "pipeline/file_retry.h"
#include "pipeline/similar.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kPlacesMax = 1'000'000;  // of a pool

// Reads a whole file. What makes no sense is told and left out, so that the rest is looked at too; where that
// would make something else seem wrong that is not, nothing is said of it.
class FileReader {
 public:
  FileReader(const std::string& text, const std::string& path,
             const std::map<std::string, std::string>& given)
      : complaints_(path, text), given_(given), yaml_(parse_yaml(text)) {}

  PipelineReading read() {
    for (const YamlError& error : yaml_.errors) complaints_.add(error.place, {}, error.message);
    if (yaml_.is_whole) read_top();
    return {std::move(file_), std::move(complaints_.all)};
  }

 private:
  void read_top() {
    YamlMap top(root_, complaints_);
    Definition& definition = file_.definition;
    if (const auto version = top.number("version", kVersion, kVersion);
        !version && root_.find("version") == nullptr) {
      top.complain(root_, "`version: 1` is missing");
    }
    definition.name = top.text("name").value_or("pipeline");
    if (!read_parameters(top, complaints_, given_, file_)) scope_.unread.insert("params");
    top_secrets_are_known_ = is_clean([&] { file_.secrets = top.texts("secrets"); });
    environment_ = top.texts_by_name("env");
    if (!is_clean([&] { variables_ = top.texts_by_name("vars"); })) scope_.unread.insert("vars");
    if (const auto what = top.choice("on_failure", {"stop", "continue"}))
      definition.on_failure = *what == 0 ? OnFailure::stop : OnFailure::finish;
    definition.timeout = top.duration("timeout").value_or(Duration{});
    read_pools(top);
    read_workers(top);
    defaults_ = top.take("defaults");
    if (defaults_ != nullptr && defaults_->kind != Yaml::Kind::map)
      top.complain(*defaults_, "defaults has to be a map");
    const Yaml* modules = top.take("modules");
    top.finish();
    if (modules == nullptr || modules->kind != Yaml::Kind::map) {
      return top.complain(modules != nullptr ? *modules : root_,
                          "`modules` is missing: a map of modules by their ids");
    }
    for (const auto& [id, node] : modules->fields) read_module(id, node);
    check_references(*modules);
    find_unused_secrets(top);
    forget_what_cannot_be_judged();
    if (auto graph = Graph::of(file_.definition); !graph)
      complaints_.all.insert(complaints_.all.end(), graph.error().begin(), graph.error().end());
  }

  // Whether nothing was wrong with what it reads.
  template <class Read>
  bool is_clean(const Read& read) const {
    const std::size_t before = complaints_.heard;
    read();
    return complaints_.heard == before;
  }

  void read_pools(YamlMap& top) {
    const Yaml* node = top.take("pools");
    if (node == nullptr) return;
    pools_are_known_ = node->kind == Yaml::Kind::map;
    YamlMap pools(*node, complaints_);
    for (const auto& [name, value] : node->fields)
      file_.definition.pools[name.text] = pools.number(name.text.c_str(), 1, kPlacesMax).value_or(kPlacesMax);
  }

  // A list of what workers can do, for a check before the run: each a list of capabilities.
  void read_workers(YamlMap& top) {
    const Yaml* node = top.take("workers");
    if (node == nullptr) return;
    if (node->kind != Yaml::Kind::list)
      return top.complain(*node, "workers has to be a list of lists of capabilities");
    const bool are_known = is_clean([&] {
      for (const Yaml& worker : node->items)
        file_.workers.push_back(canonical(top.texts_of(worker, "a worker")));
    });
    if (!are_known) file_.workers.clear();
  }

  FindValue values_of(const Yaml& node) const {
    return [this, &node](const char* key) {
      const Yaml* own = node.find(key);
      return own == nullptr && defaults_ != nullptr ? defaults_->find(key) : own;
    };
  }

  // Once all that they may refer to is known.
  void check_references(const Yaml& modules) {
    for (std::size_t i = 0; i < modules.fields.size(); ++i) {
      const ModuleSpec& spec = file_.definition.modules[i];
      const Yaml& node = modules.fields[i].value;
      Needable& one = scope_.modules[spec.id] = needable_of(values_of(node));
      if (!is_module(node)) one.outputs_are_known = one.artifacts_are_known = false;
      for (const Target& target : spec.targets) one.targets.push_back(target.name);
    }
    for (std::size_t i = 0; i < modules.fields.size(); ++i) {
      ReferenceCheck(scope_, complaints_, file_.definition.modules[i], *modules_[i], file_.variables)
          .run(referring_values(values_of(modules.fields[i].value), root_.find("env")));
    }
  }

  // One with nothing in it gets all from the defaults.
  static bool is_module(const Yaml& node) {
    return node.kind == Yaml::Kind::map || node.kind == Yaml::Kind::null;
  }

  void read_module(const Yaml& id, const Yaml& node) {
    YamlMap map(node, complaints_, id.text, defaults_);
    ModuleSpec& spec = file_.definition.modules.emplace_back();
    spec.id = id.text;
    spec.where = complaints_.where(id.place);
    const auto module = std::make_shared<FileModule>();
    modules_.push_back(module);
    module->id = id.text;
    spec.result = result_type<CommandOutputs>();
    spec.body = body_of(module);
    if (!is_module(node)) {
      secrets_are_known_ = false;
      return;
    }
    module->variables = variables_;
    spec.description = map.text("desc").value_or("");
    read_commands(map, node, complaints_, *module);
    read_needs(map, spec, *module);
    read_place(map, spec);
    read_patience(map, spec);
    read_sharing(map, spec);
    read_inputs(map, complaints_, spec);
    read_artifacts(map, complaints_, spec);
    module->directory = map.text("dir").value_or("");
    module->environment = environment_;
    for (auto& [name, value] : map.texts_by_name("env")) module->environment[name] = value;
    module->run_if = map.text("if");
    module->skip_if = map.text("skip_if");
    secrets_are_known_ &= is_clean([&] { module->secrets = map.texts("secrets"); });
    if (const Yaml* secrets = map.take("secrets")) check_secrets(map, *secrets, spec.id);
    spec.skip_by_inputs = conditions_of(module);
    if (module->run_if || module->skip_if) file_.conditional.insert(spec.id);
    spec.secrets = module->secrets;
    module->outputs = map.texts("outputs");
    map.finish();
    if (!std::exchange(checked_defaults_, true)) map.finish_fallback();
    add_command_to_key(spec.cache, *module, file_.values);
  }

  void read_needs(YamlMap& map, ModuleSpec& spec, FileModule& module) {
    const Yaml* needs = map.take("needs");
    if (needs == nullptr) return;
    const auto add = [&](const Yaml& node) {
      Need need{.where = complaints_.where(node.place)};
      if (node.kind == Yaml::Kind::scalar) {
        need.on = node.text;
      } else {
        YamlMap one(node, complaints_, spec.id);
        if (node.find("id") == nullptr) return map.complain(node, "a need is an id, or has one under `id`");
        need.on = one.text("id").value_or("");
        if (one.boolean("optional").value_or(false)) need.kind = NeedKind::optional;
        if (const auto when = one.choice("when", {"success", "settled", "failed"})) {
          static constexpr NeedKind kKinds[] = {NeedKind::required, NeedKind::settled, NeedKind::failed};
          need.kind = kKinds[*when];
        }
        one.finish();
      }
      module.needs.push_back(need.on);
      spec.needs.push_back(std::move(need));
    };
    if (needs->kind != Yaml::Kind::list) return add(*needs);
    for (const Yaml& node : needs->items) add(node);
  }

  void read_place(YamlMap& map, ModuleSpec& spec) {
    spec.capabilities = map.texts("caps");
    spec.preferred = map.texts("prefer");
    spec.pinned = map.choice("pin", {"master"}).has_value();
    const Yaml* matrix = map.take("matrix");
    if (matrix == nullptr) return;
    if (!is_clean([&] { spec.targets = targets_of(map, *matrix); }))
      spec.targets.clear();
    else if (spec.targets.empty())
      map.complain(*matrix, "a matrix without targets");
  }

  void read_patience(YamlMap& map, ModuleSpec& spec) {
    spec.timeout = map.duration("timeout").value_or(kModuleTimeout);
    spec.queue_timeout = map.duration("queue_timeout").value_or(Duration{});
    spec.stop_grace = map.duration("stop_grace").value_or(kStopGrace);
    spec.estimate = map.duration("estimate").value_or(Duration{});
    spec.idempotent = map.boolean("idempotent").value_or(true);
    spec.always_run = map.boolean("always").value_or(false);
    read_retry(map, complaints_, spec);
    read_allowed_failure(map, spec);
  }

  void read_sharing(YamlMap& map, ModuleSpec& spec) {
    spec.locks = map.texts("lock");
    spec.alone = map.boolean("alone").value_or(false);
    spec.pool = map.text("pool").value_or("");
    spec.weight = map.number("weight", 1, 1'000'000).value_or(1);
    if (const auto priority = map.choice("priority", {"low", "normal", "high", "critical"}))
      spec.priority = static_cast<Priority>(*priority);
    if (const auto hint = map.choice("hint", {"cpu", "io"})) spec.hint = *hint == 0 ? Hint::cpu : Hint::io;
    spec.category = map.text("category").value_or("");
    spec.tags = map.texts("tags");
  }

  void check_secrets(YamlMap& map, const Yaml& secrets, const std::string& module) {
    const auto check = [&](const Yaml& name) {
      used_.insert(name.text);
      file_.asked_secrets.push_back(
          {name.text,
           {module, complaints_.where(name.place),
            "secret '" + name.text + "' is not set here: set it in the environment"}});
      if (!top_secrets_are_known_ || std::ranges::find(file_.secrets, name.text) != file_.secrets.end())
        return;
      secrets_are_known_ = false;  // one that seems to be unused may be this one, misspelt
      map.complain(name, "secret '" + name.text + "' is not among `secrets` at the top" +
                             suggestion(name.text, file_.secrets));
    };
    if (secrets.kind == Yaml::Kind::scalar) check(secrets);
    std::ranges::for_each(secrets.items, check);
  }

  void find_unused_secrets(YamlMap& top) {
    const Yaml* secrets = root_.find("secrets");
    if (secrets == nullptr || !secrets_are_known_) return;
    const auto check = [&](const Yaml& name) {
      if (!used_.contains(name.text))
        top.complain(name, "secret '" + name.text +
                               "' is used by no module: list it under `secrets` of those that need it");
    };
    if (secrets->kind == Yaml::Kind::scalar) check(*secrets);
    std::ranges::for_each(secrets->items, check);
  }

  // It would be complained of for what is wrong elsewhere.
  void forget_what_cannot_be_judged() {
    for (ModuleSpec& spec : file_.definition.modules) {
      if (!pools_are_known_) spec.pool.clear();
      std::erase_if(spec.consumes, [this](const Consumed& one) {
        const auto producer = scope_.modules.find(one.producer);
        return producer != scope_.modules.end() && !producer->second.artifacts_are_known;
      });
    }
  }

  Complaints complaints_;
  const std::map<std::string, std::string>& given_;
  const YamlText yaml_;
  const Yaml& root_ = yaml_.root;
  PipelineFile file_;
  const Yaml* defaults_ = nullptr;
  std::map<std::string, std::string> environment_;
  std::map<std::string, std::string> variables_;
  std::vector<std::shared_ptr<const FileModule>> modules_;  // as in the definition
  ReferenceScope scope_{file_, {}, {}};
  std::set<std::string> used_;  // secrets
  bool checked_defaults_ = false;
  // Of what was complained of, nothing more can be said.
  bool top_secrets_are_known_ = true;
  bool secrets_are_known_ = true;  // of all modules
  bool pools_are_known_ = true;
};

}  // namespace

PipelineReading PipelineFile::read(const std::string& text, const std::string& path,
                                   const std::map<std::string, std::string>& given) {
  PipelineReading reading = FileReader(text, path, given).read();
  sort_by_place(reading.problems);
  return reading;
}

std::expected<PipelineFile, std::vector<Problem>> PipelineFile::parse(
    const std::string& text, const std::string& path, const std::map<std::string, std::string>& given) {
  PipelineReading reading = read(text, path, given);
  if (!reading.problems.empty()) return std::unexpected(std::move(reading.problems));
  return std::move(reading.file);
}

}  // namespace baton::pipeline
