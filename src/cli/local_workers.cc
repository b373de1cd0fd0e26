#include "cli/local_workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <thread>
#include <utility>

#include "cli/output.h"
#include "cli/quantities.h"
#include "process/child_process.h"

namespace baton::cli {
namespace {

// How we reach the coordinator is how our workers do; where a Redis is they hear elsewhere.
void add_options(std::vector<std::string>& words, const MeetingPoint& meeting) {
  const Connection& connection = meeting.connection;
  words.insert(words.end(), {"--namespace", connection.ns, "--timeout", time_text(connection.timeout)});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  for (const std::string& address : connection.addresses) {
    if (!meeting.is_redis()) add("--connect", address);
  }
  add("--user", connection.user);
  add("--token-file", connection.token_file);
  if (connection.tls) words.emplace_back("--tls");
  add("--tls-ca", connection.tls_files.ca);
  add("--tls-certificate", connection.tls_files.certificate);
  add("--tls-key", connection.tls_files.key);
}

}  // namespace

void LocalWorkers::began(const pipeline::Graph&, const std::string& run) {
  run_ = run;
  for (std::uint64_t i = 0; i < options_.workers; ++i) start();
}

void LocalWorkers::start() {
  threads_.emplace_back([this, words = command()](const std::stop_token& stop) {
    process::ChildCommand command{.words = words, .grace = seconds(15)};
    if (meeting_.is_redis()) command.environment = {std::string(kHandedOver) + "=" + meeting_.where()};
    command.said = [](process::Output, std::string_view text) {
      (void)!::write(STDERR_FILENO, text.data(), text.size());
    };
    auto ended = process::run_child(command, std::span(&stop, 1));
    if (!ended) to_errors("baton: a worker could not be started: {}\n", ended.error().message);
  });
}

std::vector<std::string> LocalWorkers::command() const {
  const std::uint64_t processors = std::max(1U, std::thread::hardware_concurrency());
  const std::string slots = std::to_string(options_.jobs > 0 ? options_.jobs : processors);
  std::vector<std::string> words = {
      "/proc/self/exe",         "worker", "--quiet", "--run", run_, "--slots", slots, "--lost-after",
      time_text(meeting_.lease)};
  add_options(words, meeting_);
  if (!meeting_.blobs.empty()) words.insert(words.end(), {"--blobs", meeting_.blobs});
  for (const std::string& capability : options_.capabilities)
    words.insert(words.end(), {"--cap", capability});
  return words;
}

}  // namespace baton::cli
