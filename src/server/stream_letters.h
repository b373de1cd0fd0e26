// Dead letters, with their texts.
#pragma once

#include <vector>

#include "core/stream/stream_query.h"
#include "server/arguments.h"
#include "server/desk.h"
#include "server/second_look.h"

namespace baton::server {

std::vector<std::uint64_t> letters_of(Arguments& arguments);  // those that were named

class LettersOperation final : public Operation {
 public:
  LettersOperation(core::StreamLook look, std::vector<std::uint64_t> named)
      : look_(std::move(look)), named_(std::move(named)) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override;
  void looked(Desk& desk) override;
  void fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) override;
  void write(ReplyWriter& reply) override;
  std::size_t weight() const override { return 512; }

 private:
  struct Texts {
    Result<Bytes> body;
    Result<Bytes> error;
  };
  core::StreamLook look_;
  const std::vector<std::uint64_t> named_;
  core::StreamPage<core::LetterView> page_;
  SecondLook second_look_;
  std::vector<Texts> texts_;
  core::Lsn lsn_ = 0;
};

}  // namespace baton::server
