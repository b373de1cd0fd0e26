// A storage that fails, or lets something happen, just when a test wants it to.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "checkpoint/storage.h"

namespace baton::checkpoint {

class FaultyStorage final : public Storage {
 public:
  enum class Call { create, append, finish, open, read, piece, put, get, list, remove };
  // Asked before each call; an error takes its place. From many threads.
  using Fault = std::function<Status(Call call, const std::string& path)>;

  FaultyStorage(Storage& real, Fault fault) : real_(real), fault_(std::move(fault)) {}

  Result<std::unique_ptr<ShardWriter>> create(const std::string& path, std::uint64_t bytes) override {
    if (auto ok = fault_(Call::create, path); !ok) return std::unexpected(ok.error());
    auto writer = real_.create(path, bytes);
    if (!writer) return writer;
    return std::make_unique<Writer>(*this, path, *std::move(writer));
  }
  Result<std::unique_ptr<ShardReader>> open(const std::string& path) override {
    if (auto ok = fault_(Call::open, path); !ok) return std::unexpected(ok.error());
    auto reader = real_.open(path);
    if (!reader) return reader;
    return std::make_unique<Reader>(*this, path, *std::move(reader));
  }
  Result<bool> put_if_absent(const std::string& path, ByteView bytes) override {
    if (auto ok = fault_(Call::put, path); !ok) return std::unexpected(ok.error());
    return real_.put_if_absent(path, bytes);
  }
  Result<Bytes> get(const std::string& path) override {
    if (auto ok = fault_(Call::get, path); !ok) return std::unexpected(ok.error());
    return real_.get(path);
  }
  Result<std::vector<StorageEntry>> list(const std::string& directory) override {
    if (auto ok = fault_(Call::list, directory); !ok) return std::unexpected(ok.error());
    return real_.list(directory);
  }
  Status remove(const std::string& path) override {
    if (auto ok = fault_(Call::remove, path); !ok) return ok;
    return real_.remove(path);
  }
  Status remove_directory(const std::string& path) override { return real_.remove_directory(path); }
  std::string place() const override { return real_.place(); }
  std::string describe() const override { return real_.describe(); }

 private:
  class Writer final : public ShardWriter {
   public:
    Writer(FaultyStorage& storage, std::string path, std::unique_ptr<ShardWriter> real)
        : storage_(storage), path_(std::move(path)), real_(std::move(real)) {}
    Status append(ByteView bytes) override {
      if (auto ok = storage_.fault_(Call::append, path_); !ok) return ok;
      return real_->append(bytes);
    }
    Status finish() override {
      if (auto ok = storage_.fault_(Call::finish, path_); !ok) return ok;
      return real_->finish();
    }

   private:
    FaultyStorage& storage_;
    const std::string path_;
    const std::unique_ptr<ShardWriter> real_;
  };
  class Reader final : public ShardReader {
   public:
    Reader(FaultyStorage& storage, std::string path, std::unique_ptr<ShardReader> real)
        : storage_(storage), path_(std::move(path)), real_(std::move(real)) {}
    std::uint64_t size() const override { return real_->size(); }
    std::string version() const override { return real_->version(); }
    Status read(const std::vector<ByteRange>& ranges, const Sink& sink) override {
      if (auto ok = storage_.fault_(Call::read, path_); !ok) return ok;
      return real_->read(ranges, [&](std::uint64_t offset, ByteView bytes) -> Status {
        if (auto ok = storage_.fault_(Call::piece, path_); !ok) return ok;
        return sink(offset, bytes);
      });
    }

   private:
    FaultyStorage& storage_;
    const std::string path_;
    const std::unique_ptr<ShardReader> real_;
  };

  Storage& real_;
  const Fault fault_;
};

}  // namespace baton::checkpoint
