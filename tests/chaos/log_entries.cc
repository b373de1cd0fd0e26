#include "tests/chaos/log_entries.h"

#include <charconv>

#include "tests/crash/child.h"

namespace baton::chaos {
namespace {

// The value of a member: a number, or a string without anything in it that has to be escaped.
std::string_view member(std::string_view line, const std::string& name) {
  const std::string mark = "\"" + name + "\":";
  const std::size_t found = line.find(mark);
  if (found == std::string_view::npos) return {};
  std::string_view rest = line.substr(found + mark.size());
  if (rest.front() == '"') return rest.substr(1, rest.find('"', 1) - 1);
  return rest.substr(0, rest.find_first_of(",}"));
}

std::uint64_t number(std::string_view line, const std::string& name) {
  const std::string_view text = member(line, name);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Entry entry_of(std::string_view line) {
  Entry entry{.lsn = number(line, "lsn"),
              .type = std::string(member(line, "type")),
              .task = number(line, "task"),
              .lease = number(line, "lease"),
              .key = std::string(member(line, "key")),
              .worker = std::string(member(line, "worker")),
              .attempt = static_cast<std::uint32_t>(number(line, "attempt")),
              .outcome = std::string(member(line, "outcome"))};
  if (entry.type == "TaskCreated") entry.task = entry.lsn;
  if (entry.type == "LeaseGranted") entry.lease = entry.lsn;
  return entry;
}

Log read_log(const std::string& program, const std::string& directory, std::string& trouble) {
  const crash::Ran ran = crash::run({.command = {program, "log", "dump", directory, "--json"}}, 120'000);
  // 1 is a torn tail, which a killed server may leave: nothing that was acknowledged.
  if (ran.exit.code != 0 && ran.exit.code != 1) {
    trouble = "log dump: " + ran.errors;
    return {};
  }
  Log log;
  for (const std::string& line : ran.lines) log.push_back(entry_of(line));
  return log;
}

}  // namespace baton::chaos
