// The disk behind libpower_shim.so: files and names as the process sees them, and what of it is durable.
#pragma once

#include <dirent.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/crash/power_shim.h"

namespace baton::crash {

// The system's own functions, which the shim stands in front of.
struct System {
  int (*open)(const char*, int, ...);
  int (*close)(int);
  ssize_t (*pread)(int, void*, std::size_t, off_t);
  ssize_t (*pwrite)(int, const void*, std::size_t, off_t);
  int (*rename)(const char*, const char*);
  int (*unlink)(const char*);
  int (*mkdir)(const char*, mode_t);
  DIR* (*opendir)(const char*);
  dirent* (*readdir)(DIR*);
  int (*closedir)(DIR*);
  static const System& get();
};

struct Inode {
  bool is_directory = false;
  bool on_medium = false;       // its name is durable, so there is a real file
  std::string real;             // … that has not been read yet
  int descriptor = -1;          // … that has
  std::vector<char> cache;      // what the process sees
  std::vector<char> medium;     // what was synced, as long as there is no real file
  std::set<std::size_t> dirty;  // sectors of the cache
};
using InodeRef = std::shared_ptr<Inode>;  // shared between names and open files

class PowerDisk {
 public:
  // Null if the environment does not ask for it.
  static PowerDisk* get();
  // Whether `path` is this disk's business; then it is without the directory's name.
  bool holds(const char* path, std::string& relative) const;

  // All of these return what the system call of the name returns, with errno set. Any thread may call them.
  int open(const std::string& path, int flags);
  bool close(int descriptor);  // false: not ours
  InodeRef file(int descriptor);
  ssize_t read(Inode& inode, void* into, std::size_t count, std::size_t offset);
  ssize_t write(Inode& inode, const void* from, std::size_t count, std::size_t offset);
  int sync(Inode& inode, std::size_t begin = 0, std::size_t end = SIZE_MAX);  // these bytes of it
  bool is_directory(int descriptor, std::string& path);
  int sync_directory(const std::string& path);
  int rename(const std::string& from, const std::string& to);
  int unlink(const std::string& path);
  int mkdir(const std::string& path);
  bool list(const std::string& path, std::vector<std::string>& names);
  int truncate(Inode& inode, std::size_t bytes);
  std::uint64_t free_bytes();  // of a limited disk
  bool is_limited() const { return page_->capacity_bytes != 0; }

 private:
  struct NameChange {
    std::string directory;
    std::string removed;  // empty: nothing
    std::string added;
    InodeRef inode;
    bool synced = false;  // waits only for its own directory to become durable
  };
  struct Fault {
    Call call = Call::open;
    std::uint64_t number = 0;  // 0: none
    int error = 0;             // 0: a short write
    bool for_ever = false;
  };

  PowerDisk();
  void scan(const std::string& directory);
  void load(Inode& inode);
  int fails(Call call, bool& is_short);
  void change(NameChange change);
  void settle(const std::string& directory, std::size_t count_max);
  void make_real(const NameChange& change);
  void put_sector(Inode& inode, std::size_t sector, const char* bytes, std::size_t length);
  void flush_early(Inode& inode);
  std::uint64_t random();
  bool chance();
  std::uint64_t used_bytes() const;
  std::string full(const std::string& path) const { return path.empty() ? root_ : root_ + "/" + path; }

  std::mutex mutex_;
  std::string root_;
  bool scanned_ = false;
  std::map<std::string, InodeRef> names_;  // as the process sees them
  std::map<int, InodeRef> open_;
  std::map<int, std::string> open_directories_;
  std::vector<NameChange> changes_;  // not yet durable, in order
  ShimPage own_page_{};
  ShimPage* page_ = &own_page_;
  Fault fault_;
  std::uint64_t seed_ = 0;
  std::uint64_t early_percent_ = 0;
  std::uint64_t sync_us_ = 0;
};

}  // namespace baton::crash
