#include "cli/local_workers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "cli/quantities.h"
#include "process/child_process.h"

namespace baton::cli {
namespace {

// How we reach the coordinator is how our workers do.
void add_options(std::vector<std::string>& words, const Connection& connection) {
  words.insert(words.end(), {"--namespace", connection.ns, "--timeout", time_text(connection.timeout)});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  for (std::size_t other = 1; other < connection.addresses.size(); ++other)
    add("--connect", connection.addresses[other]);
  add("--user", connection.user);
  add("--token-file", connection.token_file);
  if (connection.tls) words.emplace_back("--tls");
  add("--tls-ca", connection.tls_files.ca);
  add("--tls-certificate", connection.tls_files.certificate);
  add("--tls-key", connection.tls_files.key);
}

}  // namespace

void LocalWorkers::began(const pipeline::Graph&, const std::string& run) {
  for (std::uint64_t i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([words = command(run)](const std::stop_token& stop) {
      process::ChildCommand command{.words = words, .grace = seconds(15)};
      command.said = [](process::Output, std::string_view text) {
        (void)!::write(STDERR_FILENO, text.data(), text.size());
      };
      auto ended = process::run_child(command, std::span(&stop, 1));
      if (!ended) fmt::print(stderr, "baton: a worker could not be started: {}\n", ended.error().message);
    });
  }
}

std::vector<std::string> LocalWorkers::command(const std::string& run) const {
  const std::string slots = std::to_string(std::max<std::uint64_t>(1, options_.jobs));
  std::vector<std::string> words = {"/proc/self/exe",
                                    "worker",
                                    "--quiet",
                                    "--connect",
                                    meeting_.where(),
                                    "--run",
                                    run,
                                    "--slots",
                                    slots,
                                    "--lost-after",
                                    time_text(meeting_.lease)};
  add_options(words, meeting_.connection);
  if (!meeting_.blobs.empty()) words.insert(words.end(), {"--blobs", meeting_.blobs});
  for (const std::string& capability : options_.capabilities)
    words.insert(words.end(), {"--cap", capability});
  return words;
}

}  // namespace baton::cli
