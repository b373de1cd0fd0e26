#include "tests/stream/cluster.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/check.h"
#include "postgres/connection.h"

namespace baton {
namespace {

namespace fs = std::filesystem;

// PostgreSQL refuses to be run by root.
const passwd* unprivileged() { return ::geteuid() == 0 ? ::getpwnam("nobody") : nullptr; }

// It ends with the test, whatever becomes of that. Where only root may enter the root folder, as in a chroot
// made by mktemp, nobody has to be allowed to look into folders all the same; and access(), by which
// PostgreSQL looks for its own programs, heeds that only without the fix-up of user ids.
std::vector<std::string> as_somebody_else(const std::vector<std::string>& command) {
  std::vector<std::string> words = {"/usr/bin/setpriv", "--pdeathsig=QUIT"};
  if (const passwd* user = unprivileged()) {
    words.insert(words.end(),
                 {"--reuid=" + std::to_string(user->pw_uid), "--regid=" + std::to_string(user->pw_gid),
                  "--clear-groups", "--securebits=+no_setuid_fixup", "--inh-caps=+dac_read_search",
                  "--ambient-caps=+dac_read_search"});
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

pid_t spawn(const std::vector<std::string>& command, const std::string& directory) {
  const std::vector<std::string> whole = as_somebody_else(command);
  std::vector<char*> words;
  for (const std::string& word : whole) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const std::string said = directory + "/output";
  // The copy may not ask for memory: a thread that did so meanwhile took the lock for it along.
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int output = ::open(said.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0666);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (::chdir(directory.c_str()) == 0) ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

std::optional<std::string> Cluster::programs() {
  std::optional<std::string> newest;
  int version = 14;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", absent)) {
    const int number = std::atoi(entry.path().filename().c_str());
    if (number > version && fs::exists(entry.path() / "bin/initdb"))
      version = number, newest = entry.path() / "bin";
  }
  return newest;
}

Cluster::Cluster(Flushes flushes) : flushes_(flushes) {
  if (const passwd* user = unprivileged())
    BATON_CHECK(::chown(directory_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
  const pid_t child = spawn({*programs() + "/initdb", "-D", "data", "-U", "baton", "-A", "trust", "-E",
                             "UTF8", "--no-sync", "--no-instructions", "--locale=C"},
                            directory_.path());
  int status = 0;
  ::waitpid(child, &status, 0);
  BATON_CHECK(status == 0);
  start();
}

Cluster::~Cluster() { stop(); }

void Cluster::start() {
  const char* flush = flushes_ == Flushes::on ? "on" : "off";
  server_ =
      spawn({*programs() + "/postgres", "-D", "data", "-k", directory_.path(), "-c",
             "listen_addresses=127.0.0.1", "-p", std::to_string(port()), "-c", std::string("fsync=") + flush,
             "-c", "max_wal_size=4GB", "-c", "max_connections=300", "-c", "shared_buffers=256MB"},
            directory_.path());
  for (int tries = 0; tries < 600; ++tries) {
    if (postgres::Connection::open(url(), seconds(5))) return;
    BATON_CHECK(::waitpid(server_, nullptr, WNOHANG) == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  BATON_CHECK(false && "the server did not come up");
}

void Cluster::stop() {
  if (server_ == 0) return;
  ::kill(server_, SIGQUIT);
  ::waitpid(server_, nullptr, 0);
  server_ = 0;
}

std::string Cluster::url(const std::string& database) const {
  return "host=" + directory_.path() + " port=" + std::to_string(port()) + " user=baton dbname=" + database;
}

std::string Cluster::create(const std::string& database, const std::string& from) const {
  auto connection = postgres::Connection::open(url(), seconds(5));
  BATON_CHECK(connection && (*connection)->execute("create database " + database + " template " + from));
  return url(database);
}

}  // namespace baton
