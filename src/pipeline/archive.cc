#include "pipeline/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/random_name.h"
#include "process/child_process.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 512;
constexpr char kFile = '0', kLink = '2', kMore = 'x';

// A header, by the offsets that POSIX gives its fields.
class Header {
 public:
  Header() = default;
  // Without a time: what was made again and is the same is the same archive.
  Header(char type, std::string_view name, std::uint64_t bytes, unsigned mode, std::string_view target = {}) {
    text(0, 100, name);
    number(100, 8, mode);
    number(108, 8, 0);
    number(116, 8, 0);
    number(124, 12, bytes);
    number(136, 12, 0);
    block_[156] = type;
    text(157, 100, target);
    text(257, 8, std::string_view("ustar\00000", 8));
    number(148, 7, sum());
    block_[155] = ' ';
  }

  char* data() { return block_.data(); }
  std::string_view bytes() const { return {block_.data(), kBlock}; }
  char type() const { return block_[156]; }
  std::string name() const { return text(0, 100); }
  std::string target() const { return text(157, 100); }
  std::uint64_t size() const { return number(124, 12); }
  unsigned mode() const { return static_cast<unsigned>(number(100, 8)); }
  bool is_end() const {
    return std::ranges::all_of(block_, [](char c) { return c == '\0'; });
  }
  bool is_sound() const { return text(257, 5) == "ustar" && number(148, 8) == sum(); }

 private:
  void text(std::size_t at, std::size_t width, std::string_view value) {
    std::ranges::copy(value.substr(0, width), block_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::string text(std::size_t at, std::size_t width) const {
    return {block_.data() + at, ::strnlen(block_.data() + at, width)};
  }
  // In octal digits, and a zero behind them.
  void number(std::size_t at, std::size_t width, std::uint64_t value) {
    for (std::size_t digit = width - 1; digit-- > 0; value >>= 3)
      block_[at + digit] = static_cast<char>('0' + (value & 7));
  }
  std::uint64_t number(std::size_t at, std::size_t width) const {
    const std::string digits = text(at, width);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    return value;
  }
  // Of all bytes, with blanks in the place of the sum itself.
  std::uint64_t sum() const {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < kBlock; ++i)
      all += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block_[i]);
    return all;
  }

  std::array<char, kBlock> block_{};
};

std::string_view padding(std::uint64_t bytes) {
  static constexpr std::array<char, kBlock> kZeros{};
  return {kZeros.data(), (kBlock - bytes % kBlock) % kBlock};
}

// A field of an extended header: its length, which counts its own digits, the name and the value.
std::string extended(std::string_view name, std::string_view value) {
  const std::size_t rest = name.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + std::string(name) + "=" + std::string(value) + "\n";
}

std::unexpected<Error> cannot(const char* what, const std::string& path) {
  const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::no_space : Errc::io_failed;
  return failure(code, std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

bool stays_inside(const std::string& path) {
  const fs::path plain(path);
  return !path.empty() && !plain.is_absolute() && std::ranges::find(plain, "..") == plain.end();
}

constexpr std::uint64_t kPlainSizeMax = (std::uint64_t{1} << 33) - 1;  // what eleven octal digits hold

Status write_entry(const std::string& directory, const std::string& name, const ByteSink& into) {
  const std::string path = (fs::path(directory) / name).string();
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) return cannot("read", path);
  const bool is_link = S_ISLNK(about.st_mode);
  if (!stays_inside(name) || (!is_link && !S_ISREG(about.st_mode)))
    return failure(Errc::invalid_request, path + " is no file below " + directory);
  std::string target;
  if (is_link) {
    std::error_code trouble;
    target = fs::read_symlink(path, trouble).string();
    if (!stays_inside(target))
      return failure(Errc::invalid_request, path + " is a link to '" + target + "', which may be elsewhere");
  }
  const std::uint64_t bytes = is_link ? 0 : static_cast<std::uint64_t>(about.st_size);
  std::string more;
  if (name.size() > 100) more += extended("path", name);
  if (target.size() > 100) more += extended("linkpath", target);
  if (bytes > kPlainSizeMax) more += extended("size", std::to_string(bytes));
  Status done;
  if (!more.empty()) {
    done = into(Header(kMore, "more", more.size(), 0644).bytes());
    if (done) done = into(more);
    if (done) done = into(padding(more.size()));
  }
  if (done) done = into(Header(is_link ? kLink : kFile, name, bytes, about.st_mode & 0777, target).bytes());
  if (!done || is_link) return done;
  std::uint64_t written = 0;
  done = bytes_of_file(path)([&](std::string_view piece) -> Status {
    written += piece.size();
    return into(piece);
  });
  if (!done) return done;
  if (written != bytes) return failure(Errc::io_failed, path + " changed while it was read");
  return into(padding(bytes));
}

class Unpacking {
 public:
  Unpacking(const std::string& archive, const std::string& directory, const std::stop_token& stop)
      : archive_(archive), directory_(directory), stop_(stop), from_(archive, std::ios::binary) {}

  Status run() {
    for (;;) {
      if (stop_.stop_requested()) return stopped();
      Header header;
      if (!from_.read(header.data(), kBlock)) return failure(Errc::corrupt, archive_ + " ends too early");
      if (header.is_end()) return {};
      if (!header.is_sound()) return failure(Errc::corrupt, archive_ + " is no archive");
      if (header.type() == kMore) {
        if (!read_more(header.size())) return failure(Errc::corrupt, archive_ + " ends too early");
        continue;
      }
      if (auto put = put_entry(header); !put) return put;
      name_.clear(), target_.clear(), bytes_ = 0;
    }
  }

 private:
  bool read_more(std::uint64_t bytes) {
    constexpr std::uint64_t kMoreMax = 1 << 20;
    std::string text(std::min(bytes, kMoreMax), '\0');
    if (!from_.read(text.data(), static_cast<std::streamsize>(text.size())) || !skip(padding(bytes).size()))
      return false;
    for (std::string_view left = text; !left.empty();) {
      std::size_t length = 0;
      std::from_chars(left.data(), left.data() + left.size(), length);
      const std::size_t space = left.find(' '), equals = left.find('=');
      if (length == 0 || length > left.size() || space > equals || equals >= length) return false;
      const std::string_view name = left.substr(space + 1, equals - space - 1);
      const std::string_view value = left.substr(equals + 1, length - equals - 2);
      if (name == "path") name_ = value;
      if (name == "linkpath") target_ = value;
      if (name == "size") std::from_chars(value.data(), value.data() + value.size(), bytes_);
      left.remove_prefix(length);
    }
    return true;
  }

  static std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

  Status put_entry(const Header& header) {
    const std::string name = name_.empty() ? header.name() : name_;
    const std::string target = target_.empty() ? header.target() : target_;
    const std::uint64_t bytes = bytes_ > 0 ? bytes_ : header.size();
    if (!stays_inside(name) || (header.type() == kLink && !stays_inside(target)))
      return failure(Errc::invalid_request, "'" + name + "' in " + archive_ + " would be put elsewhere");
    const std::string path = (fs::path(directory_) / name).string();
    const std::string aside = path + "." + random_name() + ".tmp";
    std::error_code trouble;
    fs::create_directories(fs::path(path).parent_path(), trouble);
    if (trouble)
      return failure(Errc::io_failed, "cannot make the folder of " + path + ": " + trouble.message());
    Status done;
    if (header.type() == kLink) {
      if (::symlink(target.c_str(), aside.c_str()) != 0) done = cannot("write", path);
    } else {
      done = put_file(aside, bytes, header.mode());
    }
    if (done && ::rename(aside.c_str(), path.c_str()) != 0) done = cannot("write", path);
    if (!done) ::unlink(aside.c_str());
    return done;
  }

  Status put_file(const std::string& path, std::uint64_t bytes, unsigned mode) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> into(std::fopen(path.c_str(), "wbxe"), &std::fclose);
    if (!into) return cannot("write", path);
    std::vector<char> piece(std::size_t{256} << 10);
    for (std::uint64_t left = bytes; left > 0;) {
      if (stop_.stop_requested()) return stopped();
      const auto next = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
      if (!from_.read(piece.data(), static_cast<std::streamsize>(next)))
        return failure(Errc::corrupt, archive_ + " ends too early");
      if (std::fwrite(piece.data(), 1, next, into.get()) != next) return cannot("write", path);
      left -= next;
    }
    if (std::fclose(into.release()) != 0 || ::chmod(path.c_str(), mode & 0777) != 0)
      return cannot("write", path);
    if ((mode & 0111) != 0) process::let_starts_pass();
    if (!skip(padding(bytes).size())) return failure(Errc::corrupt, archive_ + " ends too early");
    return {};
  }

  bool skip(std::size_t bytes) {
    from_.ignore(static_cast<std::streamsize>(bytes));
    return static_cast<std::size_t>(from_.gcount()) == bytes;
  }

  const std::string archive_;
  const std::string directory_;
  const std::stop_token& stop_;
  std::ifstream from_;
  std::string name_, target_;  // of the next entry, from an extended header
  std::uint64_t bytes_ = 0;
};

}  // namespace

ByteSource archive_of(std::string directory, std::vector<std::string> files) {
  if (directory.empty()) directory = ".";
  return [directory = std::move(directory), files = std::move(files)](const ByteSink& into) -> Status {
    for (const std::string& name : files) {
      if (auto written = write_entry(directory, name, into); !written) return written;
    }
    const std::string end(2 * kBlock, '\0');
    return into(end);
  };
}

Status unpack_archive(const std::string& archive, const std::string& directory, const std::stop_token& stop) {
  return Unpacking(archive, directory.empty() ? "." : directory, stop).run();
}

}  // namespace baton::pipeline
