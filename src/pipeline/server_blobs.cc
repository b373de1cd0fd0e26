#include "pipeline/server_blobs.h"

#include <algorithm>

#include "base/pause.h"
#include "pipeline/question.h"
#include "pipeline/steady_time.h"
#include "pipeline/value.h"
#include "wire/resp_value.h"

namespace baton::pipeline {
namespace {

std::string in_url(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '.' || c == '_' || c == '-';
    if (is_plain) {
      escaped += c;
    } else {
      escaped += '%';
      escaped += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
      escaped += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
    }
  }
  return escaped;
}

// What the server said, as an error.
Error refusal(const client::HttpReply& reply) {
  const auto value = from_json(reply.body);
  const Value* error = value ? value->field("error") : nullptr;
  const Value* code = error ? error->field("code") : nullptr;
  const Value* message = error ? error->field("message") : nullptr;
  const auto known = code && code->text() ? code_of(*code->text()) : std::nullopt;
  return {
      known.value_or(reply.status == 404 ? Errc::not_found : Errc::permission_denied),
      message && message->text() ? *message->text() : "the server answered " + std::to_string(reply.status)};
}

bool is_momentary(Errc code) {
  return code == Errc::unavailable || code == Errc::outcome_unknown || code == Errc::exhausted;
}

}  // namespace

Result<client::HttpReply> ServerBlobs::call(const client::HttpRequest& request, const std::stop_token& stop,
                                            const std::function<bool()>& is_open) {
  std::int64_t away_since = 0;  // 0: it is there
  std::int64_t busy_since = 0;  // 0: it was not yet
  for (Duration delay = milliseconds(250);; delay = std::min(delay + delay, seconds(5))) {
    auto address = where(stop);
    auto reply = address ? client::call_http(*address, options_, request, stop)
                         : Result<client::HttpReply>(std::unexpected(address.error()));
    if (reply && reply->status >= 300) reply = std::unexpected(refusal(*reply));
    if (reply || !is_momentary(reply.error().code) || (is_open && !is_open())) return reply;
    const std::int64_t now = steady_ms();
    const bool is_busy = reply.error().code == Errc::exhausted;
    if (is_busy && busy_since == 0) busy_since = now;
    away_since = is_busy ? 0 : away_since == 0 ? now : away_since;  // until it was away all was well
    if (now > (is_busy ? busy_since : away_since) + patience_.ms) return reply;
    {
      const std::lock_guard lock(mutex_);
      where_.reset();  // after a restart it may listen elsewhere
    }
    if (pause(delay, stop)) return reply;
  }
}

// Of several servers, at the one that answers.
Result<client::Address> ServerBlobs::where(const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex_);
    if (where_) return *where_;
  }
  std::string connected;
  Result<wire::RespValue> info = failure(Errc::closed, "stopped");
  {
    client::ClientOptions options = options_;
    options.news = [&](const client::ConnectionNews& news) {
      if (news.trouble.empty()) connected = news.address;
    };
    client::Client client(options);
    Question<wire::RespValue> question;
    client.ask({"INFO", "server"}, question.answer());
    info = question.wait(stop);
  }
  if (!info) return std::unexpected(info.error());
  constexpr std::string_view kPort = "http_port:";
  const std::string text(info->text);
  const std::size_t at = text.find(kPort);
  const std::string port =
      at == std::string::npos ? "0" : text.substr(at + kPort.size(), text.find('\r', at) - at - kPort.size());
  if (port == "0")
    return failure(Errc::not_found, "the server does not serve HTTP, and blobs need that: --http");
  for (const std::string& one : options_.addresses) {
    const auto address = client::parse_address(one);
    if (!address || address->text() != connected) continue;
    const std::lock_guard lock(mutex_);
    where_ = client::Address{address->host, port};
    return *where_;
  }
  return failure(Errc::unavailable, "the connection to the server broke");
}

std::string ServerBlobs::target_of(const BlobRef& blob) const {
  return "/v1/blobs/" + blob.hash + "?task=key:" + in_url(run_) +
         (options_.ns.empty() ? "" : "&namespace=" + in_url(options_.ns));
}

Result<BlobRef> ServerBlobs::put(const ByteSource& from, const std::stop_token& stop) {
  auto blob = measure(from, stop);
  if (!blob) return blob;
  // Also one that is there: it may have been damaged since.
  auto reply = call({.method = "PUT",
                     .target = target_of(*blob),
                     .body_bytes = blob->bytes,
                     .body = from,
                     .wanted_body = {}},
                    stop);
  if (!reply) return std::unexpected(reply.error());
  return blob;
}

Status ServerBlobs::pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) {
  bool has_begun = false;  // a sink that has got a part of it cannot begin anew
  const ByteSink noting = [&](std::string_view piece) -> Status {
    if (stop.stop_requested()) return failure(Errc::closed, "stopped");
    has_begun = true;
    return into(piece);
  };
  auto reply =
      call({.target = target_of(blob), .body = {}, .wanted_body = noting}, stop, [&] { return !has_begun; });
  if (!reply) return std::unexpected(reply.error());
  return {};
}

Result<bool> ServerBlobs::has(const BlobRef& blob, const std::stop_token& stop) {
  auto reply = call({.method = "HEAD", .target = target_of(blob), .body = {}, .wanted_body = {}}, stop);
  if (reply) return true;
  if (reply.error().code == Errc::not_found) return false;
  return std::unexpected(reply.error());
}

}  // namespace baton::pipeline
