// Streams of a coordinator, as operators see them: the questions are verbs (docs/protocol.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/stream_source.h"
#include "client/client.h"

namespace baton::cli {

class CoordinatorStreams final : public StreamSource {
 public:
  explicit CoordinatorStreams(client::Client& client) : client_(client) {}

  Result<Rows> lanes() override;
  Result<Rows> instances(Duration stale) override;
  Result<Rows> lag(std::uint64_t count) override;
  Result<Rows> partitions(std::uint64_t count, Duration stale) override;
  Result<Rows> why(const std::string& message, Duration stale) override;
  Result<Rows> letters(const Letters& letters, std::span<const Field> fields) override;
  Result<std::uint64_t> replay(const Letters& letters) override;
  Result<std::uint64_t> purge(const Letters& letters, Duration older_than) override;

 private:
  using Words = std::vector<std::string>;
  // All pages of a list.
  Result<Rows> ask(const Words& words, std::string_view list, std::span<const Field> fields);
  // One call takes a bounded amount of letters: of those named, part after part; of all, again and again
  // until none is left.
  Result<std::uint64_t> act(const Words& words, const Letters& letters);
  Result<std::uint64_t> act_on_all(Words words);

  client::Client& client_;
};

}  // namespace baton::cli
