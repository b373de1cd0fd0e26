#include "pipeline/context.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/random_name.h"
#include "pipeline/artifacts.h"
#include "pipeline/graph.h"
#include "pipeline/site.h"
#include "process/child_process.h"

namespace baton::pipeline {
namespace {

namespace chrono = std::chrono;

constexpr std::size_t kKeptBytes = std::size_t{512} << 10;  // of the beginning, and as much of the end
constexpr std::size_t kLastWordsBytes = 4096;

// The beginning and the end of what may be long.
class Captured {
 public:
  void add(std::string_view text) {
    const std::size_t room = kKeptBytes - std::min(kKeptBytes, head_.size());
    head_ += text.substr(0, room);
    if (text.size() <= room) return;
    tail_ += text.substr(room);
    if (tail_.size() <= 2 * kKeptBytes) return;
    left_out_ += tail_.size() - kKeptBytes;
    tail_.erase(0, tail_.size() - kKeptBytes);
  }
  std::string text() const {
    return left_out_ == 0 ? head_ + tail_
                          : head_ + "\n[… " + std::to_string(left_out_) + " bytes left out …]\n" + tail_;
  }

 private:
  std::string head_, tail_;
  std::size_t left_out_ = 0;
};

// Hands on whole lines, without secrets, and at the end what is left. One that is too long is cut.
class Lines {
 public:
  Lines(const Secrets& secrets, std::function<void(std::string)> hand_on)
      : secrets_(secrets), hand_on_(std::move(hand_on)) {}
  ~Lines() {
    if (!open_.empty()) hand_on_(shown(open_, hidden()));
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void add(std::string_view text) {
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      open_ += text.substr(0, end);
      if (open_.ends_with('\r')) open_.pop_back();
      hand_on_(shown(open_, hidden()));
      open_.clear();
      begun_ = 0;
    }
    open_ += text;
    if (open_.size() > kLineMax + held_back_) cut();
  }

 private:
  static constexpr std::size_t kLineMax = 64 << 10;

  std::vector<bool> hidden() const {
    std::vector<bool> hidden = secrets_.hidden(open_);
    std::fill_n(hidden.begin(), std::min(begun_, hidden.size()), true);
    return hidden;
  }

  // The last of it may be the beginning of a secret, and is seen with what follows.
  void cut() {
    const std::vector<bool> hidden = this->hidden();
    const std::size_t end = open_.size() - held_back_;
    hand_on_(shown(std::string_view(open_).substr(0, end), hidden));
    const auto from = hidden.begin() + static_cast<std::ptrdiff_t>(end);
    begun_ = static_cast<std::size_t>(std::find(from, hidden.end(), false) - from);
    open_.erase(0, end);
  }

  const Secrets& secrets_;
  const std::size_t held_back_ = std::max<std::size_t>(secrets_.longest(), 1) - 1;
  const std::function<void(std::string)> hand_on_;
  std::string open_;
  std::size_t begun_ = 0;  // so much of it, at the beginning, is of secrets that began before it was cut
};

std::string how_it_ended(const std::string& program, const process::ChildEnd& end) {
  return end.signal != 0 ? program + " was ended by signal " + std::to_string(end.signal)
                         : program + " exited with code " + std::to_string(end.exit_code);
}

std::string tail_of(const std::string& text, std::size_t bytes) {
  return text.size() <= bytes ? text : text.substr(text.size() - bytes);
}

}  // namespace

Context::Context(const Site& site, const GraphNode& node, const std::vector<ArtifactRef>& artifacts,
                 std::uint32_t attempt, std::stop_token stop)
    : site_(site),
      node_(node),
      artifacts_(artifacts),
      attempt_(attempt),
      secrets_(site.secrets),
      stop_(std::move(stop)) {}

Context::~Context() {
  std::error_code ignored;  // nobody is left to be told
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

std::stop_token Context::stop() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void Context::begin_try(std::stop_token stop) {
  const std::lock_guard lock(mutex_);
  stop_ = std::move(stop);
  stored_.clear();
}

std::vector<ArtifactRef> Context::stored() const {
  const std::lock_guard lock(mutex_);
  return stored_;
}

std::string Context::last_words() const {
  const std::lock_guard lock(mutex_);
  return last_words_;
}

const std::string& Context::module() const { return node_.id; }
const std::string& Context::worker() const { return site_.name; }
const std::string& Context::run_id() const { return site_.run; }
const std::string& Context::directory() const { return site_.directory; }

std::optional<std::string> Context::matrix_target() const {
  return node_.target ? std::optional(node_.target->name) : std::nullopt;
}

std::string Context::matrix(const std::string& axis) const {
  if (!node_.target) return {};
  const auto found = node_.target->axes.find(axis);
  return found == node_.target->axes.end() ? std::string() : found->second;
}

const std::map<std::string, std::string>& Context::matrix_axes() const {
  static const std::map<std::string, std::string> kNone;
  return node_.target ? node_.target->axes : kNone;
}

const std::map<std::string, std::string>& Context::parameters() const { return site_.parameters; }

std::optional<std::string> Context::parameter(const std::string& name) const {
  const auto found = site_.parameters.find(name);
  return found == site_.parameters.end() ? std::nullopt : std::optional(found->second);
}

const std::string& Context::secret(const std::string& name) const {
  if (std::ranges::find(node_.spec->secrets, name) == node_.spec->secrets.end()) {
    throw std::runtime_error("secret '" + name + "' is not one that the module declares with needs_secret()");
  }
  if (const std::string* value = site_.secrets.find(name)) return *value;
  throw std::runtime_error("secret '" + name + "' is not known on " + site_.name +
                           ": set it in its environment");
}

void Context::log(std::string_view text) {
  if (!site_.log) return;
  Lines lines(secrets_,
              [&](std::string line) { site_.log({node_.id, attempt_, Stream::note, std::move(line)}); });
  lines.add(text);
}

void Context::progress(double part) {
  if (site_.progress) site_.progress(node_.id, part);
}

void Context::step(const std::string& name, const std::function<void()>& body) {
  const auto began = chrono::steady_clock::now();
  log("-- " + name);
  try {
    body();
  } catch (const CommandFailed& failed) {
    throw CommandFailed(name + ": " + failed.what(), failed.exit_code, failed.detail);
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception& failed) {
    throw std::runtime_error(name + ": " + failed.what());
  }
  const auto took = chrono::duration_cast<chrono::milliseconds>(chrono::steady_clock::now() - began);
  log("-- " + name + " took " + std::to_string(took.count()) + " ms");
}

void Context::skip(std::string reason) { throw Skipped{std::move(reason)}; }

CommandResult Context::exec(const std::vector<std::string>& words, const CommandOptions& options) {
  if (words.empty()) throw std::runtime_error("there is no command to run");
  Captured output, errors;
  const auto log_as = [&](Stream stream) {
    return [&, stream](std::string line) {
      if (site_.log && !options.quiet) site_.log({node_.id, attempt_, stream, std::move(line)});
    };
  };
  const auto began = chrono::steady_clock::now();
  process::ChildEnd end;
  {
    Lines output_lines(secrets_, log_as(Stream::output)), error_lines(secrets_, log_as(Stream::errors));
    process::ChildCommand command{
        .words = words,
        .directory = options.directory.empty() ? site_.directory : options.directory,
        .input = options.input,
        .grace = node_.spec->stop_grace};
    for (const auto& [name, value] : options.environment) command.environment.push_back(name + "=" + value);
    command.withheld = site_.secrets.names();  // a command gets those that its module hands it
    command.said = [&](process::Output from, std::string_view text) {
      const bool is_error = from == process::Output::errors;
      (is_error ? errors : output).add(text);
      (is_error ? error_lines : output_lines).add(text);
    };
    const std::stop_token until = stop();
    if (until.stop_requested()) throw Stopped(words[0] + " was not begun");
    auto ended = process::run_child(command, std::span(&until, 1));
    if (!ended) throw NotStarted("the command could not be started: " + ended.error().message);
    end = std::move(*ended);
  }
  const auto took = chrono::duration_cast<chrono::milliseconds>(chrono::steady_clock::now() - began);
  CommandResult result{end.exit_code, output.text(), errors.text(), Duration{took.count()}};
  // Masked before it is cut: half a secret would not be found.
  const std::string last_words =
      tail_of(secrets_.mask(result.errors.empty() ? result.output : result.errors), kLastWordsBytes);
  {
    const std::lock_guard lock(mutex_);
    last_words_ = last_words;
  }
  if (end.was_stopped) throw Stopped(words[0] + " was stopped");
  if ((end.exit_code != 0 || end.signal != 0) && !options.may_fail) {
    throw CommandFailed(how_it_ended(words[0], end), end.signal != 0 ? 128 + end.signal : end.exit_code,
                        last_words);
  }
  return result;
}

CommandResult Context::shell(const std::string& script, const CommandOptions& options) {
  return exec({"sh", "-eu", "-c", script}, options);
}

void Context::store(const std::string& name, const std::vector<std::string>& paths) {
  if (std::ranges::find(node_.spec->produces, name, &Produced::name) == node_.spec->produces.end())
    throw ArtifactFailed("artifact '" + name + "' of " + node_.id +
                         " is not one that the module declares with produces()");
  ArtifactRef artifact = store_artifact(site_, node_, {name, paths}, stop());
  const std::lock_guard lock(mutex_);
  std::erase_if(stored_, [&](const ArtifactRef& one) { return one.name == name; });
  stored_.push_back(std::move(artifact));
}

std::string Context::fetch(const std::string& producer, const std::string& name) {
  const std::string folder = temporary_directory() + "/" + random_name();
  fetch_artifact(site_, node_, {producer, name, folder}, artifacts_, stop());
  return folder;
}

std::string Context::temporary_file() { return site_.scratch->new_path(); }

std::string Context::temporary_directory() {
  const std::lock_guard lock(mutex_);
  if (temporary_.empty()) {
    std::string path = (std::filesystem::temp_directory_path() / "baton-module-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr)
      throw std::runtime_error("no temporary folder could be made at " + path);
    temporary_ = path;
  }
  return temporary_;
}

}  // namespace baton::pipeline
