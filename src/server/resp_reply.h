// A verb's reply in the Redis protocol.
#pragma once

#include "server/reply_writer.h"
#include "wire/resp.h"

namespace baton::server {

class RespReply final : public ReplyWriter {
 public:
  RespReply(std::string& out, int version) : writer_(out, version) {}

  void map(std::size_t members) override { writer_.map(members); }
  void list(std::size_t items) override { writer_.array(items); }
  void name(std::string_view text) override { writer_.bulk(text); }
  void text(std::string_view value) override { writer_.bulk(value); }
  void bytes(ByteView value) override { writer_.bulk(value); }
  void number(std::int64_t value) override { writer_.number(value); }
  void boolean(bool value) override { writer_.boolean(value); }
  void null() override { writer_.null(); }
  void error(const Error& error) override {
    const Duration wait = retry_after(error);
    if (wait == Duration{}) return writer_.error(word(error.code), error.message);
    writer_.error(word(error.code), error.message + "; retry_after_ms=" + std::to_string(wait.ms));
  }

 private:
  wire::RespWriter writer_;
};

}  // namespace baton::server
