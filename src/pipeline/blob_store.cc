#include "pipeline/blob_store.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "base/random_name.h"
#include "wire/sha256.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::unexpected<Error> cannot(const char* what, const std::string& path) {
  const Errc code = errno == ENOSPC || errno == EDQUOT ? Errc::no_space
                    : errno == ENOENT                  ? Errc::not_found
                                                       : Errc::io_failed;
  return failure(code, std::string("cannot ") + what + " " + path + ": " + std::strerror(errno));
}

std::string short_name(const BlobRef& blob) { return blob.hash.substr(0, 12) + "…"; }

// For whoever can throw away what has come: a connection that breaks in the middle is no reason to give up.
// Where nothing comes at all, the store has waited long enough.
Status fetch_anew(BlobStore& store, const BlobRef& blob, const std::function<Status()>& begin_anew,
                  const ByteSink& into, const std::stop_token& stop) {
  for (int left = 3;; --left) {
    bool has_begun = false;
    auto fetched = fetch(
        store, blob,
        [&](std::string_view bytes) -> Status {
          has_begun = true;
          return into(bytes);
        },
        stop);
    const bool is_broken = !fetched && (fetched.error().code == Errc::unavailable ||
                                        fetched.error().code == Errc::outcome_unknown);
    if (!is_broken || !has_begun || left == 1 || stop.stop_requested()) return fetched;
    if (auto anew = begin_anew(); !anew) return anew;
  }
}

}  // namespace

ByteSource bytes_of_text(std::string_view text) {
  return [text](const ByteSink& into) -> Status {
    for (std::string_view left = text; !left.empty();
         left.remove_prefix(std::min(left.size(), kPieceBytes))) {
      if (auto taken = into(left.substr(0, kPieceBytes)); !taken) return taken;
    }
    return {};
  };
}

ByteSource bytes_of_file(std::string path) {
  return [path = std::move(path)](const ByteSink& into) -> Status {
    const File file(std::fopen(path.c_str(), "rbe"));
    if (!file) return cannot("read", path);
    std::vector<char> piece(kPieceBytes);
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get())) {
      if (auto taken = into({piece.data(), got}); !taken) return taken;
    }
    if (std::ferror(file.get()) != 0) return cannot("read", path);
    return {};
  };
}

Result<BlobRef> measure(const ByteSource& source, const std::stop_token& stop) {
  BlobRef blob;
  wire::Sha256 hash;
  auto read = source([&](std::string_view bytes) -> Status {
    if (stop.stop_requested()) return failure(Errc::closed, "stopped");
    hash.add(bytes);
    blob.bytes += bytes.size();
    return {};
  });
  if (!read) return std::unexpected(read.error());
  blob.hash = hash.hex();
  return blob;
}

Status fetch(BlobStore& store, const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) {
  BlobRef got;
  wire::Sha256 hash;
  auto poured = store.pour(
      blob,
      [&](std::string_view bytes) -> Status {
        hash.add(bytes);
        got.bytes += bytes.size();
        if (got.bytes > blob.bytes)
          return failure(Errc::corrupt, "blob " + short_name(blob) + " in " + store.place() +
                                            " is longer than the " + std::to_string(blob.bytes) +
                                            " bytes that were stored");
        return into(bytes);
      },
      stop);
  if (!poured) return poured;
  got.hash = hash.hex();
  if (got == blob) return {};
  return failure(Errc::corrupt, "blob " + short_name(blob) + " in " + store.place() +
                                    " is not what was stored: " + std::to_string(got.bytes) + " of " +
                                    std::to_string(blob.bytes) + " bytes, and they are others");
}

Result<std::string> fetch_text(BlobStore& store, const BlobRef& blob, const std::stop_token& stop) {
  std::string text;
  auto fetched = fetch_anew(
      store, blob,
      [&]() -> Status {
        text.clear();
        return {};
      },
      [&](std::string_view bytes) -> Status {
        text += bytes;
        return {};
      },
      stop);
  if (!fetched) return std::unexpected(fetched.error());
  return text;
}

Status fetch_file(BlobStore& store, const BlobRef& blob, const std::string& path,
                  const std::stop_token& stop) {
  const std::string aside = path + "." + random_name() + ".tmp";
  File file(std::fopen(aside.c_str(), "wbxe"));
  if (!file) return cannot("write", aside);
  auto done = fetch_anew(
      store, blob,
      [&]() -> Status {
        file.reset();  // first, for it may still have something to write
        file.reset(std::fopen(aside.c_str(), "wbe"));
        return file ? Status{} : cannot("write", aside);
      },
      [&](std::string_view bytes) -> Status {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size()) return {};
        return cannot("write", aside);
      },
      stop);
  if (done && std::fclose(file.release()) != 0) done = cannot("write", aside);
  if (done && std::rename(aside.c_str(), path.c_str()) != 0) done = cannot("write", path);
  if (!done) std::remove(aside.c_str());
  return done;
}

}  // namespace baton::pipeline
