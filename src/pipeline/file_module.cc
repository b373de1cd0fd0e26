#include "pipeline/file_module.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "pipeline/context.h"
#include "pipeline/plain_command.h"

namespace baton::pipeline {
namespace {

const CommandOutputs* outputs_of(const Settlement& settlement) {
  return static_cast<const CommandOutputs*>(settlement.value.get());
}

// One run of a file's module.
class Performance {
 public:
  Performance(const FileModule& module, Context& context, std::span<const Input> inputs)
      : module_(module), context_(context), inputs_(inputs) {}

  CommandOutputs run() {
    hide_what_is_secret();
    const std::string output_file =
        context_.temporary_file();  // most make none: it is there when it is written to
    CommandOptions options{.environment = environment()};
    options.environment["BATON_OUTPUT"] = output_file;
    if (!module_.directory.empty()) options.directory = in_run(text(module_.directory));
    if (!module_.words.empty()) {
      std::vector<std::string> words;
      for (const std::string& word : module_.words) words.push_back(text(word));
      context_.exec(words, options);
    }
    for (const FileStep& step : module_.steps) {
      const auto script = [&] { run_script(text(step.script), options); };
      if (step.name.empty())
        script();
      else
        context_.step(step.name, script);
    }
    CommandOutputs result{.outputs = read_outputs(output_file), .secrets = {}};
    for (const auto& [name, value] : result.outputs) {
      for (std::string& secret : context_.secrets().found_in(value)) {
        if (!result.secrets) result.secrets.emplace();
        result.secrets->push_back(std::move(secret));
      }
    }
    return result;
  }

  std::optional<std::string> reason_to_skip() {
    hide_what_is_secret();
    if (module_.run_if && !holds(*module_.run_if)) return "if: " + *module_.run_if + " does not hold";
    if (module_.skip_if && holds(*module_.skip_if)) return "skip_if: " + *module_.skip_if + " holds";
    return std::nullopt;
  }

 private:
  void hide_what_is_secret() {
    for (const Input& input : inputs_) {
      for (const Settlement& one : input) {
        const CommandOutputs* values = outputs_of(one);
        if (values == nullptr || !values->secrets) continue;
        for (const std::string& secret : *values->secrets) context_.hide(secret);
      }
    }
  }

  // A plain command is run as what it is, as make does: a shell costs a millisecond. What cannot be started
  // so is the shell's to complain of.
  void run_script(const std::string& script, const CommandOptions& options) {
    if (module_.shell == FileModule().shell) {
      if (const auto words = plain_command(script); !words.empty()) {
        try {
          context_.exec(words, options);
          return;
        } catch (const NotStarted&) {
        }
      }
    }
    std::vector<std::string> words = module_.shell;
    words.push_back(script);
    context_.exec(words, options);
  }

  std::string in_run(const std::string& path) const {
    return path.starts_with('/') || context_.directory().empty() ? path : context_.directory() + "/" + path;
  }

  std::string text(const std::string& from) const {
    auto text = substitute(from, [this](const Reference& reference) { return resolve(reference); });
    if (!text) throw std::runtime_error(text.error().message);
    return std::move(*text);
  }

  bool holds(const std::string& condition) const {
    // Whether there is a variable may be asked.
    const auto resolve_or_empty = [this](const Reference& reference) -> Result<std::string> {
      const bool is_unset = reference.root == "env" && std::getenv(reference.rest.c_str()) == nullptr;
      return is_unset ? reference.otherwise.value_or("") : resolve(reference);
    };
    auto answer =
        evaluate(condition, resolve_or_empty, [this](const Asked& asked) { return answer_to(asked); });
    if (!answer) throw std::runtime_error(condition + ": " + answer.error().message);
    return *answer;
  }
  Result<bool> answer_to(const Asked& asked) const {
    if (asked.function == "exists") return std::filesystem::exists(in_run(asked.argument));
    const auto all = instances(asked.argument);
    if (all.empty()) return false;
    const bool wants_success = asked.function == "success";
    const auto fits = [&](const Settlement* one) {
      return wants_success ? has_value(one->status)
                           : one->status == ModuleStatus::failed || one->status == ModuleStatus::timed_out ||
                                 one->status == ModuleStatus::ignored_failure;
    };
    return wants_success ? std::ranges::all_of(all, fits) : std::ranges::any_of(all, fits);
  }

  // Of a needed module: all its instances, or the one that is named with its target.
  std::vector<const Settlement*> instances(const std::string& id) const {
    std::vector<const Settlement*> all;
    for (const Input& input : inputs_) {
      for (const Settlement& one : input) {
        const std::string plain = one.module.substr(0, one.module.find('['));
        if (one.module == id || plain == id) all.push_back(&one);
      }
    }
    return all;
  }

  Result<std::string> resolve(const Reference& reference) const {
    const std::string name = spelled(reference);
    if (reference.root == "params") {
      if (auto value = context_.parameter(reference.rest)) return *value;
    } else if (reference.root == "vars") {
      if (const auto known = module_.variables.find(reference.rest); known != module_.variables.end())
        return known->second;
    } else if (reference.root == "env") {
      const char* value = std::getenv(reference.rest.c_str());
      if (reference.otherwise && (value == nullptr || *value == '\0')) return *reference.otherwise;
      if (value != nullptr) return std::string(value);
      return failure(Errc::not_found, name + " is not set on " + context_.worker() +
                                          ": set it there, or give a default: ${env." + reference.rest +
                                          ":-…}");
    } else if (reference.root == "matrix") {
      return context_.matrix(reference.rest);
    } else if (reference.root == "run") {
      if (reference.rest == "id") return context_.run_id();
    } else if (reference.root == "needs") {
      return resolve_need(reference.rest, name);
    }
    return failure(Errc::not_found, name + " is not known");
  }
  Result<std::string> resolve_need(const std::string& rest, const std::string& name) const {
    const std::size_t outputs = rest.find(".outputs.");
    const std::size_t status = rest.ends_with(".status") ? rest.size() - 7 : std::string::npos;
    const std::string id = rest.substr(0, std::min(outputs, status));
    const auto all = instances(id);
    if (all.empty()) return std::string();  // it is optional, and not part of the run
    if (outputs == std::string::npos) return std::string(word(all.front()->status));
    const CommandOutputs* values = outputs_of(*all.front());
    if (values == nullptr) return std::string();
    const auto found = values->outputs.find(rest.substr(outputs + 9));
    if (found == values->outputs.end()) return failure(Errc::not_found, name + ": there is no such output");
    return found->second;
  }

  std::map<std::string, std::string> environment() const {
    std::map<std::string, std::string> all = {{"BATON_RUN", context_.run_id()},
                                              {"BATON_MODULE", context_.module()}};
    if (const auto target = context_.matrix_target()) all["BATON_TARGET"] = *target;
    for (const auto& [name, value] : context_.matrix_axes())
      all["BATON_MATRIX_" + variable_name(name)] = value;
    for (const auto& [name, value] : context_.parameters()) all["BATON_PARAM_" + variable_name(name)] = value;
    for (const Input& input : inputs_) {
      for (const Settlement& one : input) {
        const std::string prefix = "BATON_NEEDS_" + variable_name(one.module);
        all[prefix + "_STATUS"] = word(one.status);
        if (const CommandOutputs* values = outputs_of(one)) {
          for (const auto& [name, value] : values->outputs) all[prefix + "_" + variable_name(name)] = value;
        }
      }
    }
    for (const auto& [name, value] : module_.environment) all[name] = text(value);
    for (const std::string& name : module_.secrets) all[name] = context_.secret(name);
    return all;
  }

  std::map<std::string, std::string> read_outputs(const std::string& path) const {
    std::map<std::string, std::string> outputs;
    std::ifstream file(path);
    if (file.is_open()) ::unlink(path.c_str());
    for (std::string line; std::getline(file, line);) {
      const std::size_t equals = line.find('=');
      if (line.empty()) continue;
      if (equals == std::string::npos)
        throw std::runtime_error("a line in $BATON_OUTPUT is not NAME=VALUE: " + line);
      const std::string name = line.substr(0, equals);
      if (std::ranges::find(module_.outputs, name) == module_.outputs.end()) {
        throw std::runtime_error("output '" + name + "' was written and is not declared under `outputs`");
      }
      outputs[name] = line.substr(equals + 1);
    }
    for (const std::string& name : module_.outputs) {
      if (!outputs.contains(name))
        throw std::runtime_error("output '" + name + "' is declared, and was not written to $BATON_OUTPUT");
    }
    return outputs;
  }

  const FileModule& module_;
  Context& context_;
  const std::span<const Input> inputs_;
};

bool looks_at_outputs(const std::string& condition) {
  const auto parts = parts_of_condition(condition);
  return parts && std::ranges::any_of(parts->references, [](const Reference& reference) {
           return reference.root == "needs" && reference.rest.find(".outputs.") != std::string::npos;
         });
}

}  // namespace

std::string variable_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    if (c >= 'a' && c <= 'z')
      name += static_cast<char>(c - 'a' + 'A');
    else if (is_letter || is_digit)
      name += c;
    else if (!name.ends_with('_'))
      name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

std::function<std::shared_ptr<const void>(Context&, std::span<const Input>)> body_of(
    std::shared_ptr<const FileModule> module) {
  return [module = std::move(module)](Context& context,
                                      std::span<const Input> inputs) -> std::shared_ptr<const void> {
    return std::make_shared<const CommandOutputs>(Performance(*module, context, inputs).run());
  };
}

InputCondition conditions_of(std::shared_ptr<const FileModule> module) {
  if (!module->run_if && !module->skip_if) return {};
  const bool looks_at_values =
      looks_at_outputs(module->run_if.value_or("")) || looks_at_outputs(module->skip_if.value_or(""));
  return {[module = std::move(module)](Context& context, std::span<const Input> inputs) {
            return Performance(*module, context, inputs).reason_to_skip();
          },
          looks_at_values};
}

}  // namespace baton::pipeline
