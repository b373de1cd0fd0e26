// PUT, GET and HEAD /v1/blobs/HASH?task=TASK: bytes of a task that are too many for the log.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/http_session.h"
#include "server/json_arguments.h"
#include "wire/sha256.h"

namespace baton::server {

struct HttpSession::BlobAsked {
  core::TaskId task;
  std::string hash;
};

// Nothing: it was refused.
std::optional<HttpSession::BlobAsked> HttpSession::find_blob(const Principal& principal,
                                                             std::string_view path, std::string_view query,
                                                             std::initializer_list<Permission> any_of) {
  const std::string hash(path.substr(kBlobsPath.size()));
  JsonArguments read;
  if (auto good = read.read_query(blob_parameters(), query); !good) return refuse(good.error()), std::nullopt;
  const auto may = [&](Permission permission) { return principal.may(permission, read.ns()); };
  if (std::ranges::none_of(any_of, may))
    return refuse_permission(principal, *any_of.begin(), read.ns()), std::nullopt;
  if (!wire::is_sha256(hash))
    return refuse({Errc::invalid_request, "a blob is named by its SHA-256: 64 digits and letters a to f"}),
           std::nullopt;
  const core::TaskRef ref = read.arguments().task("task");
  if (const auto& complaint = read.arguments().complaint()) return refuse(*complaint), std::nullopt;
  const core::TaskId task = desk_.find(read.ns(), ref);
  if (task == core::TaskId())
    return refuse({Errc::not_found, fmt::format("no such task: '{}'", read.arguments().text("task"))}),
           std::nullopt;
  BlobShelf* const shelf = desk_.blobs();
  if (shelf == nullptr || *shelf->transfers >= shelf->limits.transfers_max)
    return refuse({Errc::exhausted, "too many blobs are on their way: try again", seconds(1)}), std::nullopt;
  return BlobAsked{task, hash};
}

// The head has been read, and the body is next. Whatever is refused now ends the connection: the body is
// still on its way.
void HttpSession::begin_upload(const UploadHead& head) {
  keep_alive_ = false;
  is_head_ = false;
  const PrincipalRef principal = principal_of(head.authorization);
  if (!principal) return refuse_stranger(head.authorization);
  if (!head.bytes) return refuse(411, "INVALID_REQUEST", "say how long it is, with Content-Length");
  const std::string_view target = head.target;
  const std::size_t question = std::min(target.find('?'), target.size());
  const auto asked =
      find_blob(*principal, target.substr(0, question), target.substr(std::min(question + 1, target.size())),
                {Permission::work, Permission::submit});
  if (!asked) return;
  BlobShelf& shelf = *desk_.blobs();
  if (*head.bytes > shelf.limits.bytes_max)
    return refuse({Errc::too_large, fmt::format("a blob has {} bytes at most", shelf.limits.bytes_max)});
  if (desk_.authority().engine().admission() != engine::Admission::open)
    return refuse({Errc::no_space, "the disk is nearly full: free some space"});
  shelf.set_aside_bytes = desk_.authority().disk_set_aside_bytes();
  keep_alive_ = head.keeps_alive;
  if (head.waits) output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  transfer_ = std::make_shared<BlobUpload>(
      shelf, asked->task, asked->hash, *head.bytes,
      BlobTransfer::Tells{
          .finished = [this](const Status& how) { transferred(how); }, .begins = {}, .changed = changed_});
  transfer_->begin();
}

void HttpSession::transferred(const Status& how) {
  const bool is_whole = transfer_->is_whole();
  std::exchange(transfer_, nullptr)->let_go();
  // Part of the body is still to come, or part of ours was sent: nothing else can be said on this connection.
  if (!is_whole) keep_alive_ = false;
  if (!how)
    refuse(how.error());
  else
    answer(201, "application/json", R"({"ok":true})");
  changed_();
}

void HttpSession::begin_download(const PrincipalRef& principal, std::string_view path,
                                 std::string_view query) {
  const auto asked =
      find_blob(*principal, path, query, {Permission::query, Permission::work, Permission::submit});
  if (!asked) return;
  transfer_ = std::make_shared<BlobDownload>(
      *desk_.blobs(), asked->task, asked->hash,
      BlobTransfer::Tells{.finished = [this](const Status& how) { sent(how); },
                          .begins = [this](std::uint64_t bytes) { begin_sending(bytes); },
                          .changed = changed_});
  transfer_->begin();
}

void HttpSession::begin_sending(std::uint64_t bytes) {
  fmt::format_to(std::back_inserter(output_),
                 "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n{}\r\n",
                 bytes, keep_alive_ ? "" : "Connection: close\r\n");
  has_begun_sending_ = true;
  if (is_head_) return sent({});
  changed_();
}

void HttpSession::sent(const Status& how) {
  std::exchange(transfer_, nullptr)->let_go();
  if (!how && !has_begun_sending_) refuse(how.error());
  closing_ = !keep_alive_ || (!how && has_begun_sending_);  // whoever reads notices that it is too short
  has_begun_sending_ = false;
  changed_();
}

}  // namespace baton::server
