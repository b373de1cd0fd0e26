#include "process/descendants.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace baton::process {
namespace {

struct Kinship {
  char state = 0;  // Z: it has ended, and nobody has asked how
  pid_t parent = 0;
  pid_t group = 0;
};

std::vector<pid_t> everybody() {
  std::vector<pid_t> all;
  std::error_code trouble;  // then there is nobody
  for (const auto& entry : std::filesystem::directory_iterator("/proc", trouble)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc{}) all.push_back(pid);
  }
  return all;
}

std::optional<Kinship> kinship_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  // "1234 (its name, which may have anything in it) S parent group …"
  std::istringstream rest(stat.substr(stat.rfind(')') + 1));
  Kinship one;
  if (rest >> one.state >> one.parent >> one.group) return one;
  return {};
}

std::set<pid_t> groups_of_descendants() {
  std::map<pid_t, Kinship> all;
  for (const pid_t pid : everybody()) {
    if (const auto one = kinship_of(pid)) all[pid] = *one;
  }
  std::set<pid_t> family = {::getpid()}, groups;
  for (std::size_t before = 0; before != family.size();) {
    before = family.size();
    for (const auto& [pid, one] : all) {
      if (!family.contains(one.parent)) continue;
      family.insert(pid);
      groups.insert(one.group);
    }
  }
  groups.erase(::getpgrp());
  return groups;
}

}  // namespace

void kill_descendants() {
  constexpr int kRoundsMax = 10;
  std::set<pid_t> known;
  // Whoever is stopped starts nothing more that we would not see.
  for (int round = 0; round < kRoundsMax; ++round) {
    const std::size_t before = known.size();
    for (const pid_t group : groups_of_descendants()) {
      if (known.insert(group).second) ::kill(-group, SIGSTOP);
    }
    if (known.size() == before) break;
  }
  for (const pid_t group : known) ::kill(-group, SIGKILL);
}

bool is_alive(pid_t group) {
  return std::ranges::any_of(everybody(), [&](pid_t pid) {
    if (::getpgid(pid) != group) return false;
    const auto one = kinship_of(pid);
    return one && one->state != 'Z';
  });
}

}  // namespace baton::process
