// Blobs at a baton server: they belong to the run's task there, and go with it.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "client/address.h"
#include "client/client.h"
#include "client/http_call.h"
#include "pipeline/blob_store.h"

namespace baton::pipeline {

class ServerBlobs : public BlobStore {
 public:
  // `patience`: how long the server may be away, or have to do with others (EXHAUSTED).
  ServerBlobs(client::ClientOptions options, std::string run, Duration patience = seconds(60))
      : options_(std::move(options)), run_(std::move(run)), patience_(patience) {}

  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override;
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override;
  Result<bool> has(const BlobRef& blob, const std::stop_token& stop) override;
  std::string place() const override { return "the server's store of run " + run_; }

 private:
  // Again and again while the server is not there, and `is_open` says that there is a use in it.
  Result<client::HttpReply> call(const client::HttpRequest& request, const std::stop_token& stop,
                                 const std::function<bool()>& is_open = {});
  // Where the server listens for HTTP: it says so itself.
  Result<client::Address> where(const std::stop_token& stop);
  std::string target_of(const BlobRef& blob) const;

  const client::ClientOptions options_;
  const std::string run_;
  const Duration patience_;
  std::mutex mutex_;
  std::optional<client::Address> where_;
};

}  // namespace baton::pipeline
