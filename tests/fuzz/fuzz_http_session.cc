// Conversations over HTTP, cut into two anywhere: whatever comes, each piece is dealt with in the end, and a
// session that goes on wants more. Whoever asks is known and may do nothing, so that none of it reaches the
// disk.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/authority.h"
#include "server/desk.h"
#include "server/http_session.h"
#include "tests/temporary_directory.h"
#include "wire/sha256.h"

namespace {

using namespace baton::server;

Access known_as(std::string_view token) {
  baton::wire::Sha256 sum;
  sum.add(token);
  return Access::read("nobody " + sum.hex() + " elsewhere=query").value();
}

struct Stage {
  const baton::TemporaryDirectory directory;
  std::unique_ptr<baton::engine::Authority> authority =
      baton::engine::Authority::open(directory.path(), {.log = {.segment_bytes = 4 << 20}}, [] {}).value();
  Reader reader{[this](const baton::core::BlobRef& blob) { return authority->read(blob); },
                [](const std::function<void()>&) {}};
  Desk desk{*authority, reader};
  const Access access = known_as("token");
  const Pages pages = [](std::string_view path, const PrincipalRef&) -> std::optional<Page> {
    if (path == "/page") return Page{.type = "text/plain", .content = "content"};
    return {};
  };
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Stage stage;
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t cut = data[0] % (stream.size() + 1);
  HttpSession session(stage.desk, stage.access, {.header_bytes_max = 512, .body_bytes_max = 256}, stage.pages,
                      [] {});
  for (const std::string_view piece : {stream.substr(0, cut), stream.substr(cut)}) {
    if (!session.wants_more()) break;
    session.receive(piece);
    session.output().clear();
    session.resume();
  }
  BATON_CHECK(session.is_closing() || session.wants_more());
  return 0;
}
