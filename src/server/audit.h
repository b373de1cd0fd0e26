// The file of what operators did: a line of JSON each, only ever appended to. Every line carries the SHA-256
// of the one before, so that a line which was changed or taken out shows.
//
//   {"number":7,"time":1794738600000,"who":"ops","from":"10.0.0.7","what":"pause","queue":"mail","namespace":"default","before":"5e88…"}
//   {"number":8,"time":1794738600003,"ends":7,"outcome":"COMMITTED","lsn":912,"before":"a13c…"}
//
// An action is written down before it is begun, and not begun if it cannot be; how it ended is a line of its
// own. A file that is rotated goes on in the next one: the first line there names the last one here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/time.h"

namespace baton::server {

struct AuditedAction {
  std::string who;
  std::string from;  // address
  std::string what;  // the verb
  std::vector<std::pair<std::string, std::string>> arguments;
  std::string ns;
};

class Audit {
 public:
  // Goes on behind what is in the file. A line that a crash cut short stays as it is; so does a file that
  // holds something else.
  static Result<std::unique_ptr<Audit>> open(std::string path);
  // After the file was renamed: goes on in a new one.
  Status reopen();

  // Writes a line and returns its number. It is on disk once what syncing() returns was called, on any
  // thread.
  Result<std::uint64_t> began(const AuditedAction& action, Instant now);
  Status ended(std::uint64_t number, std::string_view outcome, std::uint64_t lsn, Instant now);
  std::function<Status()> syncing() const;

 private:
  explicit Audit(std::string path) : path_(std::move(path)) {}
  Status open_file();
  Status append(std::string members, Instant now);

  const std::string path_;
  struct File {
    Descriptor descriptor;
    std::atomic<bool> is_lost = false;  // it could not be synced once: that it can later proves nothing
  };
  std::shared_ptr<File> file_;  // shared with whoever syncs it, while it may be replaced here
  std::uint64_t number_ = 0;
  std::string last_hash_ = std::string(64, '0');
};

struct AuditedLines {
  std::size_t count = 0;
  std::uint64_t first = 0;  // number of the first; 0 if there is none
};

// What is there; or which line cannot be read, or does not follow from the one before. `text` may begin
// anywhere in the history, as a rotated file does.
Result<AuditedLines> check_audit(std::string_view text);

}  // namespace baton::server
