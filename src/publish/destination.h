// Where a message of the outbox goes: "name", or "namespace/name".
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/client.h"

namespace baton::publish {

struct Destination {
  std::string ns;  // empty: that of the options
  std::string name;
};
inline Destination destination_of(const std::string& target) {
  const std::size_t slash = target.find('/');
  if (slash == std::string::npos) return {"", target};
  return {target.substr(0, slash), target.substr(slash + 1)};
}

// A client for each namespace, made when it is first spoken to. From any thread.
template <class Client>
class ByNamespace {
 public:
  explicit ByNamespace(client::ClientOptions options) : options_(std::move(options)) {}

  Client& at(const std::string& ns) {
    const std::scoped_lock lock(mutex_);
    auto& client = clients_[ns];
    if (!client) {
      client::ClientOptions options = options_;
      if (!ns.empty()) options.ns = ns;
      client = std::make_unique<Client>(options);
    }
    return *client;
  }

 private:
  const client::ClientOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Client>> clients_;
};

}  // namespace baton::publish
