// Pages about the server itself, which are made on request for whoever asks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/access.h"

namespace baton::server {

struct Page {
  std::string_view type;
  std::string content;
  unsigned status = 200;
  // Of a page that tells of entries: makes its content in a turn, and it leaves once they are durable.
  std::function<std::string()> look = {};
};
using Pages = std::function<std::optional<Page>(std::string_view path, const PrincipalRef& who)>;

}  // namespace baton::server
