#include "pipeline/pipeline_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/builder.h"
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

// Reads a whole file. Each part that makes no sense is told and left out, so that the rest is looked at too.
class FileReader {
 public:
  FileReader(const std::string& path, const std::map<std::string, std::string>& given)
      : complaints_(path), given_(given) {}

  std::expected<PipelineFile, std::vector<Problem>> read(const std::string& text) {
    auto root = parse_yaml(text);
    if (!root) {
      for (const YamlError& error : root.error()) complaints_.add(error.place, {}, error.message);
      return std::unexpected(std::move(complaints_.all));
    }
    root_ = std::move(*root);
    read_top();
    if (!complaints_.all.empty()) return std::unexpected(std::move(complaints_.all));
    return std::move(file_);
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
    read_parameters(top, root_, complaints_, given_, file_);
    file_.secrets = top.texts("secrets");
    environment_ = top.texts_by_name("env");
    variables_ = top.texts_by_name("vars");
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
    for (const auto& [id, node] : modules->fields) note_module(id, node);
    for (const auto& [id, node] : modules->fields) read_module(id, node);
    check_secrets();
  }

  void read_pools(YamlMap& top) {
    const Yaml* node = top.take("pools");
    if (node == nullptr) return;
    YamlMap pools(*node, complaints_);
    for (const auto& [name, value] : node->fields) {
      if (const auto places = pools.number(name.text.c_str(), 1, 1'000'000))
        file_.definition.pools[name.text] = *places;
    }
  }

  // A list of what workers can do, for a check before the run: each a list of capabilities.
  void read_workers(YamlMap& top) {
    const Yaml* node = top.take("workers");
    if (node == nullptr) return;
    if (node->kind != Yaml::Kind::list)
      return top.complain(*node, "workers has to be a list of lists of capabilities");
    for (const Yaml& worker : node->items)
      file_.workers.push_back(canonical(top.texts_of(worker, "a worker")));
  }

  // What others may say of it.
  void note_module(const Yaml& id, const Yaml& node) {
    ids_.push_back(id.text);
    const auto find = [&](const char* key) {
      const Yaml* own = node.find(key);
      return own == nullptr && defaults_ != nullptr ? defaults_->find(key) : own;
    };
    Needable& one = needables_[id.text];
    one.is_matrix = find("matrix") != nullptr;
    if (const Yaml* outputs = find("outputs")) {
      if (outputs->kind == Yaml::Kind::scalar) one.outputs.push_back(outputs->text);
      for (const Yaml& name : outputs->items) one.outputs.push_back(name.text);
    }
  }

  void read_module(const Yaml& id, const Yaml& node) {
    YamlMap map(node, complaints_, id.text, defaults_);
    ModuleSpec spec;
    spec.id = id.text;
    spec.where = complaints_.where(id.place);
    auto module = std::make_shared<FileModule>();
    module->id = id.text;
    module->variables = variables_;
    spec.description = map.text("desc").value_or("");
    read_commands(map, node, *module);
    read_needs(map, spec, *module);
    read_place(map, spec);
    read_patience(map, spec);
    read_sharing(map, spec);
    read_files(map, spec);
    module->directory = map.text("dir").value_or("");
    module->environment = environment_;
    for (auto& [name, value] : map.texts_by_name("env")) module->environment[name] = value;
    module->run_if = map.text("if");
    module->skip_if = map.text("skip_if");
    module->secrets = map.texts("secrets");
    spec.secrets = module->secrets;
    module->outputs = map.texts("outputs");
    map.finish();
    if (!std::exchange(checked_defaults_, true)) map.finish_fallback();
    ReferenceCheck(file_, needables_, map, node, spec, *module).run();
    add_command_to_key(spec.cache, *module, file_.values);
    spec.result = result_type<CommandOutputs>();
    spec.body = body_of(std::move(module));
    file_.definition.modules.push_back(std::move(spec));
  }

  void read_commands(YamlMap& map, const Yaml& node, FileModule& module) {
    const Yaml* run = map.take("run");
    const Yaml* command = map.take("cmd");
    const Yaml* steps = map.take("steps");
    if ((run != nullptr) + (command != nullptr) + (steps != nullptr) != 1) {
      map.complain(node, "it needs one of `run` (a script), `cmd` (a list of words) and `steps`");
    }
    if (run != nullptr) {
      for (std::string& script : map.texts_of(*run, "run")) {
        if (script.empty()) map.complain(*run, "run is empty");
        module.steps.push_back({{}, std::move(script)});
      }
      if (run->kind == Yaml::Kind::list && run->items.empty()) map.complain(*run, "run is empty");
    }
    if (command != nullptr) {
      module.words = map.texts_of(*command, "cmd");
      if (command->kind != Yaml::Kind::list || module.words.empty())
        map.complain(*command, "cmd has to be a list: the program and its arguments");
    }
    if (steps != nullptr) {
      if (steps->items.empty())
        map.complain(*steps, "steps has to be a list of `{name, run}`, of one at least");
      for (const Yaml& step : steps->items) {
        YamlMap one(step, complaints_, module.id);
        module.steps.push_back({one.text("name").value_or("step " + std::to_string(module.steps.size() + 1)),
                                one.text("run").value_or("")});
        if (module.steps.back().script.empty()) one.complain(step, "a step needs `run`");
        one.finish();
      }
    }
    if (const auto shell = map.texts("shell"); !shell.empty()) module.shell = shell;
  }

  void read_needs(YamlMap& map, ModuleSpec& spec, FileModule& module) {
    const Yaml* needs = map.take("needs");
    if (needs == nullptr) return;
    const auto add = [&](const Yaml& node) {
      Need need;
      if (node.kind == Yaml::Kind::scalar) {
        need.on = node.text;
      } else {
        YamlMap one(node, complaints_, spec.id);
        need.on = one.text("id").value_or("");
        if (one.boolean("optional").value_or(false)) need.kind = NeedKind::optional;
        if (const auto when = one.choice("when", {"success", "settled", "failed"})) {
          static constexpr NeedKind kKinds[] = {NeedKind::required, NeedKind::settled, NeedKind::failed};
          need.kind = kKinds[*when];
        }
        one.finish();
      }
      if (!needables_.contains(need.on) && need.kind != NeedKind::optional) {
        return map.complain(node,
                            "it needs '" + need.on + "', which does not exist" + suggestion(need.on, ids_));
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
    spec.targets = targets_of(map, *matrix);
    if (spec.targets.empty()) map.complain(*matrix, "a matrix without targets");
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

  // Files, or files, variables and anything else that its result depends on.
  void read_inputs(YamlMap& map, ModuleSpec& spec) {
    const Yaml* inputs = map.take("inputs");
    if (inputs == nullptr) return;
    if (inputs->kind != Yaml::Kind::map) {
      spec.cache.files = map.texts_of(*inputs, "inputs");
      return;
    }
    YamlMap one(*inputs, complaints_, spec.id);
    spec.cache.files = one.texts("files");
    spec.cache.environment = one.texts("env");
    spec.cache.parts = one.texts("key");
    one.finish();
  }

  void read_files(YamlMap& map, ModuleSpec& spec) {
    read_inputs(map, spec);
    if (const Yaml* produces = map.map("produces")) {
      for (const auto& [name, paths] : produces->fields) {
        spec.produces.push_back({name.text, map.texts_of(paths, "produces")});
        if (spec.produces.back().paths.empty())
          map.complain(name, "artifact '" + name.text + "' has no path");
      }
    }
    if (const Yaml* consumes = map.map("consumes")) {
      for (const auto& [what, into] : consumes->fields) {
        const std::size_t slash = what.text.rfind('/');
        if (slash == std::string::npos) {
          map.complain(what, "consumes names MODULE/ARTIFACT, and '" + what.text + "' is not of that form");
          continue;
        }
        spec.consumes.push_back({what.text.substr(0, slash), what.text.substr(slash + 1),
                                 into.kind == Yaml::Kind::scalar ? into.text : ""});
      }
    }
  }

  void check_secrets() {
    std::set<std::string> used;
    for (const ModuleSpec& spec : file_.definition.modules) {
      for (const std::string& name : spec.secrets) {
        used.insert(name);
        if (std::ranges::find(file_.secrets, name) == file_.secrets.end()) {
          complaints_.all.push_back(
              {spec.id, spec.where,
               "secret '" + name + "' is not among `secrets` at the top" + suggestion(name, file_.secrets)});
        }
      }
    }
    for (const std::string& name : file_.secrets) {
      if (!used.contains(name))
        complaints_.add(
            root_.place, {},
            "secret '" + name + "' is used by no module: list it under `secrets` of those that need it");
    }
  }

  Complaints complaints_;
  const std::map<std::string, std::string>& given_;
  PipelineFile file_;
  Yaml root_;
  const Yaml* defaults_ = nullptr;
  std::map<std::string, std::string> environment_;
  std::map<std::string, std::string> variables_;
  std::vector<std::string> ids_;
  std::map<std::string, Needable> needables_;
  bool checked_defaults_ = false;
};

}  // namespace

std::expected<PipelineFile, std::vector<Problem>> PipelineFile::parse(
    const std::string& text, const std::string& path, const std::map<std::string, std::string>& given) {
  auto file = FileReader(path, given).read(text);
  if (!file) return file;
  if (auto graph = Graph::of(file->definition); !graph) return std::unexpected(graph.error());
  return file;
}

}  // namespace baton::pipeline
