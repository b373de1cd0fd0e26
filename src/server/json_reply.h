// A verb's reply as JSON. Bytes that are not UTF-8 go under their name with _base64 behind it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/reply_writer.h"

namespace baton::server {

class JsonReply final : public ReplyWriter {
 public:
  void map(std::size_t members) override { open('{', members); }
  void list(std::size_t items) override { open('[', items); }
  void name(std::string_view text) override { name_ = text; }
  void text(std::string_view value) override;
  void bytes(ByteView value) override;
  void number(std::int64_t value) override;
  void boolean(bool value) override;
  void null() override;
  void error(const Error& error) override;

  const std::string& json() const { return out_; }
  // The reply as a whole is this error.
  const std::optional<Error>& failed() const { return failed_; }

 private:
  struct Level {
    std::size_t left;
    bool is_map;
    bool begun = false;
  };
  void open(char bracket, std::size_t members);
  void begin_value();
  void end_value();

  std::string out_;
  std::string name_;
  std::vector<Level> levels_;
  std::optional<Error> failed_;
};

}  // namespace baton::server
