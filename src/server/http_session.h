// One connection that speaks HTTP/1.1: the verbs as JSON under /v1, and pages about the server itself.
// Requests of a connection are answered one after the other.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/access.h"
#include "server/blob_transfer.h"
#include "server/desk.h"
#include "server/event_stream.h"
#include "server/page.h"
#include "server/session.h"

namespace boost::system {
class error_code;
}

namespace baton::server {

class HttpSession final : public Session, private Finisher {
 public:
  // `changed` is called when something has been added to the output outside of receive() and resume().
  HttpSession(Desk& desk, const Access& access, const HttpLimits& limits, const Pages& pages,
              std::function<void()> changed);
  ~HttpSession() override;

  void receive(std::string_view bytes) override;
  void resume() override;
  bool wants_more() const override {
    return may_begin() && (transfer_ || half_bytes() <= Desk::kSmall || !desk_.is_full_of_halves());
  }
  bool is_closing() const override { return closing_ || (events_ && events_->is_over()); }
  bool is_idle() const override { return operation_ == nullptr && !events_ && !transfer_; }
  bool is_waiting() const override { return events_ || (operation_ != nullptr && operation_->is_blocking()); }
  bool is_halfway() const override { return parser_ || transfer_; }
  std::uint64_t moved() const override { return transfer_ ? transfer_->moved() : 0; }
  void certified(std::string_view name) override {
    has_certificate_ = true;
    certified_ = access_.find_certified(name);
  }
  bool is_held_back() const override { return may_begin() && !wants_more(); }
  std::size_t half_bytes() const override;
  void access_changed() override;
  bool is_stranger() const override { return access_.needs_token() && !is_known_ && !certified_; }
  void give_up() override;

 private:
  struct Parser;
  bool may_begin() const {
    if (transfer_) return transfer_->wants_more();
    return !is_closing() && is_idle() && output_.size() < desk_.output_bytes_max();
  }
  void go_on();
  void finished(Operation& operation) override;
  void run_requests();
  bool read_head();
  void judge_head();
  void handle();
  void begin(std::unique_ptr<Operation> operation);
  struct UploadHead {
    std::string target;
    std::string authorization;
    std::optional<std::uint64_t> bytes;
    bool keeps_alive = false;
    bool waits = false;  // until it is told to go on
  };
  void begin_upload(const UploadHead& head);
  void begin_download(const PrincipalRef& principal, std::string_view path, std::string_view query);
  struct BlobAsked;
  std::optional<BlobAsked> find_blob(const Principal& principal, std::string_view path,
                                     std::string_view query, std::initializer_list<Permission> any_of);
  void transferred(const Status& how);
  void begin_sending(std::uint64_t bytes);
  void sent(const Status& how);
  void begin_events(const PrincipalRef& principal, std::string_view query, std::string_view last_id);
  void refuse(const Error& error);
  bool is_meant_for_us(std::string_view host, std::string_view origin) const;
  PrincipalRef principal_of(std::string_view authorization);
  void refuse_unreadable(const boost::system::error_code& error);
  void refuse_other_site();
  void refuse_stranger(std::string_view authorization);
  void refuse_permission(const Principal& principal, Permission permission, std::string_view ns);
  void answer(unsigned status, std::string_view type, std::string_view body, Duration retry_after = {});
  void refuse(unsigned status, std::string_view code, std::string_view message);

  Desk& desk_;
  const Access& access_;
  const HttpLimits limits_;
  const Pages& pages_;
  const std::function<void()> changed_;
  PrincipalRef certified_;
  bool is_known_ = false;         // it has once said who it is
  bool has_certificate_ = false;  // though perhaps of nobody who is named in the file of tokens
  PrincipalRef asker_;            // of what is under way
  Permission asked_for_ = Permission::query;
  std::string asked_in_;  // the namespace
  std::unique_ptr<Parser> parser_;
  std::string input_;  // not parsed yet
  Part halves_;        // of all that has come in part
  Operation* operation_ = nullptr;
  const Page* page_ = nullptr;              // that it makes, if it makes one
  std::unique_ptr<EventStream> events_;     // once there is one, nothing else comes
  std::shared_ptr<BlobTransfer> transfer_;  // of a body; shared with what the disk does for it
  bool has_begun_sending_ = false;          // of a download
  bool beginning_ = false;
  bool is_head_ = false;  // only the header of the answer is wanted
  bool keep_alive_ = true;
  bool closing_ = false;
};

}  // namespace baton::server
