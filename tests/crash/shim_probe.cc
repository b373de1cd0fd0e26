// A process with nothing but file operations, for the shim's own test: each argument is one of them, and
// after the last it waits to be killed.
//   write FILE TEXT | write_durably FILE TEXT (behind the first sector) | sync FILE | rename FROM TO | unlink
//   FILE | syncdir DIR | mkdir DIR | read FILE | list DIR
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

int with(const std::string& path, int flags, int (*act)(int, const char*), const char* text) {
  const int descriptor = ::open(path.c_str(), flags, 0600);
  if (descriptor < 0) return -1;
  const int done = act(descriptor, text);
  const int number = errno;
  ::close(descriptor);
  errno = number;
  return done;
}

int write_text(int descriptor, const char* text) {
  const auto length = static_cast<ssize_t>(std::strlen(text));
  const ssize_t wrote = ::pwrite(descriptor, text, std::strlen(text), 0);
  return wrote == length ? 0 : wrote < 0 ? -1 : (std::printf("short %zd\n", wrote), 0);
}

int write_durably(int descriptor, const char* text) {
  const iovec all{.iov_base = const_cast<char*>(text), .iov_len = std::strlen(text)};
  return ::pwritev2(descriptor, &all, 1, 512, RWF_DSYNC) < 0 ? -1 : 0;
}

int print(int descriptor, const char*) {
  char bytes[4096] = {};
  const ssize_t got = ::pread(descriptor, bytes, sizeof bytes - 1, 0);
  std::printf("read %s\n", bytes);
  return got < 0 ? -1 : 0;
}

int list(const char* path) {
  DIR* directory = ::opendir(path);
  if (directory == nullptr) return -1;
  while (const dirent* entry = ::readdir(directory)) std::printf("entry %s\n", entry->d_name);
  return ::closedir(directory);
}

}  // namespace

int main(int argc, char** argv) {
  for (int at = 1; at < argc; ++at) {
    const std::string command = argv[at];
    const char* path = argv[++at];
    int done = -1;
    if (command == "write") done = with(path, O_RDWR | O_CREAT, write_text, argv[++at]);
    if (command == "write_durably") done = with(path, O_RDWR, write_durably, argv[++at]);
    if (command == "sync")
      done = with(path, O_RDWR, [](int it, const char*) { return ::fdatasync(it); }, nullptr);
    if (command == "syncdir")
      done = with(path, O_RDONLY | O_DIRECTORY, [](int it, const char*) { return ::fsync(it); }, nullptr);
    if (command == "rename") done = ::rename(path, argv[++at]);
    if (command == "unlink") done = ::unlink(path);
    if (command == "mkdir") done = ::mkdir(path, 0700);
    if (command == "read") done = with(path, O_RDONLY, print, nullptr);
    if (command == "list") done = list(path);
    if (done != 0) std::printf("failed %s %s\n", command.c_str(), std::strerror(errno));
  }
  std::printf("done\n");
  std::fflush(stdout);
  for (;;) ::pause();
}
