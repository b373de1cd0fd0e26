#include "publish/task_sink.h"

namespace baton::publish {

client::Client& TaskSink::client_for(const std::string& ns) {
  const std::scoped_lock lock(mutex_);
  auto& client = clients_[ns];
  if (!client) {
    client::ClientOptions options = options_;
    if (!ns.empty()) options.ns = ns;
    client = std::make_unique<client::Client>(options);
  }
  return *client;
}

Status TaskSink::publish(const stream::Work& work, std::stop_token) {
  const std::size_t slash = work.target.find('/');
  const std::string ns = slash == std::string::npos ? "" : work.target.substr(0, slash);
  const std::string queue = work.target.substr(slash == std::string::npos ? 0 : slash + 1);
  const auto submitted =
      client_for(ns).submit({.queue = queue, .payload = work.data, .key = to_text(work.message.value)});
  if (!submitted) return std::unexpected(submitted.error());
  return {};
}

}  // namespace baton::publish
