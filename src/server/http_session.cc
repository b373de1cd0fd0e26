#include "server/http_session.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/json_arguments.h"
#include "server/json_reply.h"
#include "server/verb.h"

namespace baton::server {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kJson = "application/json";

std::string_view plain(boost::beast::string_view text) { return {text.data(), text.size()}; }

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::invalid_request: return 400;
    case Errc::too_large: return 413;
    case Errc::not_found: return 404;
    case Errc::exhausted: return 503;
    case Errc::no_space: return 507;
    case Errc::conflict:
    case Errc::wrong_state:
    case Errc::lease_lost:
    case Errc::lease_unknown:
    case Errc::hold_exceeded: return 409;
    default: return 500;
  }
}

// A page that is made like the answer to a question, and like that one counts for what a turn can hold.
class PageOperation final : public Operation {
 public:
  explicit PageOperation(Page made) : page(std::move(made)) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine&) override { page.content = page.look(); }
  void write(ReplyWriter&) override {}
  std::size_t weight() const override { return 512; }  // it may tell of all queues

  Page page;
};

bool is_open_to_all(std::string_view path) { return path == "/healthz" || path == "/readyz"; }

bool is_loopback_name(std::string_view host) {
  const std::string name(host.starts_with('[') ? host.substr(0, host.find(']') + 1)
                                               : host.substr(0, host.find(':')));
  in_addr address{};  // a name of somebody's may begin with 127 too
  const bool is_number = ::inet_pton(AF_INET, name.c_str(), &address) == 1;
  return name == "localhost" || name == "[::1]" || (is_number && name.starts_with("127."));
}

}  // namespace

struct HttpSession::Parser {
  explicit Parser(const HttpLimits& limits) {
    parser.eager(false);  // the head first: a blob is not for us to keep
    parser.header_limit(limits.header_bytes_max);
    parser.body_limit(boost::none);
  }
  http::request_parser<http::string_body> parser;
  bool is_head_read = false;
  bool is_head_judged = false;
};

HttpSession::HttpSession(Desk& desk, const Access& access, const HttpLimits& limits, const Pages& pages,
                         std::function<void()> changed)
    : desk_(desk),
      access_(access),
      limits_(limits),
      pages_(pages),
      changed_(std::move(changed)),
      halves_(desk.counters.half_bytes) {}

HttpSession::~HttpSession() {
  if (transfer_) transfer_->let_go();
  if (operation_ != nullptr) desk_.abandon(*operation_);
}

void HttpSession::receive(std::string_view bytes) {
  input_ += bytes;
  go_on();
}

void HttpSession::resume() { go_on(); }

void HttpSession::give_up() {
  if (!is_halfway() || transfer_) return;
  keep_alive_ = false;
  if (wants_more())
    return refuse(408, "PROTOCOL_ERROR", "half a request came, and too little more for too long");
  refuse({Errc::exhausted, "too much has come in part, of all connections", seconds(1)});
}

void HttpSession::go_on() {
  run_requests();
  if (input_.empty()) std::string().swap(input_);  // an idle connection costs little
  halves_.set(half_bytes());
}

std::size_t HttpSession::half_bytes() const {
  return (input_.empty() ? 0 : input_.capacity()) + (parser_ ? parser_->parser.get().body().capacity() : 0);
}

void HttpSession::run_requests() {
  if (beginning_) return;
  if (const auto transfer = transfer_) transfer->send(output_);
  while (may_begin() && !input_.empty()) {
    if (transfer_) {
      transfer_->receive(input_);
      continue;
    }
    if (!parser_) {
      parser_ = std::make_unique<Parser>(limits_);
      is_head_ = false;
    }
    boost::beast::error_code error;
    const std::size_t used = parser_->parser.put(boost::asio::buffer(input_), error);
    input_.erase(0, used);
    if (error && error != http::error::need_more) return refuse_unreadable(error);
    if (!parser_->parser.is_header_done()) return;
    if (!std::exchange(parser_->is_head_read, true) && !read_head()) continue;
    if (!parser_->parser.is_done()) {
      if (used > 0 && !input_.empty()) continue;
      // What is left is the beginning of a chunk's head, which nobody else bounds.
      if (input_.size() > limits_.header_bytes_max) return refuse_unreadable(http::error::header_limit);
      return judge_head();
    }
    handle();
    parser_.reset();  // all that is needed of it is in the operation, which may wait for long
  }
}

// What follows is for us to keep, up to a limit, unless it is a blob. False: the request has been dealt with.
bool HttpSession::read_head() {
  const auto& head = parser_->parser.get();
  const auto length = parser_->parser.content_length();
  is_head_ = head.method() == http::verb::head;
  if (head.method() == http::verb::put && plain(head.target()).starts_with(kBlobsPath)) {
    const UploadHead upload{std::string(plain(head.target())),
                            std::string(plain(head[http::field::authorization])),
                            length ? std::optional<std::uint64_t>(*length) : std::nullopt, head.keep_alive(),
                            boost::beast::iequals(head[http::field::expect], "100-continue")};
    const bool is_ours = is_meant_for_us(plain(head[http::field::host]), plain(head[http::field::origin]));
    parser_.reset();
    keep_alive_ = false;
    is_ours ? begin_upload(upload) : refuse_other_site();
    return false;
  }
  if (length && *length > limits_.body_bytes_max) {
    refuse_unreadable(http::error::body_limit);
    return false;
  }
  parser_->parser.body_limit(limits_.body_bytes_max);
  parser_->parser.eager(true);
  return true;
}

void HttpSession::refuse_unreadable(const boost::system::error_code& error) {
  keep_alive_ = false;
  if (error == http::error::body_limit)
    return refuse(413, "TOO_LARGE", fmt::format("a body has {} bytes at most", limits_.body_bytes_max));
  if (error == http::error::header_limit)
    return refuse(413, "TOO_LARGE",
                  fmt::format("the headers have {} bytes at most", limits_.header_bytes_max));
  refuse(400, "PROTOCOL_ERROR", error.message());
}

// The body is still to come. Nobody makes us keep one whose head says already that it is refused.
void HttpSession::judge_head() {
  if (!parser_->parser.is_header_done() || std::exchange(parser_->is_head_judged, true)) return;
  const auto& head = parser_->parser.get();
  const std::string_view authorization = plain(head[http::field::authorization]);
  keep_alive_ = false;
  if (!is_meant_for_us(plain(head[http::field::host]), plain(head[http::field::origin])))
    return refuse_other_site();
  if (!principal_of(authorization)) return refuse_stranger(authorization);
  keep_alive_ = true;
  if (boost::beast::iequals(head[http::field::expect], "100-continue"))
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
}

void HttpSession::handle() {
  const auto& request = parser_->parser.get();
  keep_alive_ = request.keep_alive();
  const std::string_view target = plain(request.target());
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, question);
  const std::string_view query = target.substr(std::min(question + 1, target.size()));
  const bool is_get = is_head_ || request.method() == http::verb::get;
  if (!is_meant_for_us(plain(request[http::field::host]), plain(request[http::field::origin])))
    return refuse_other_site();

  constexpr std::string_view kPrefix = "/v1/";
  const Verb* verb = path.starts_with(kPrefix) ? find_verb(path.substr(kPrefix.size())) : nullptr;
  const std::string_view authorization = plain(request[http::field::authorization]);
  const PrincipalRef principal = principal_of(authorization);
  if (verb == nullptr) {
    if (is_get && path == kEventsPath) {
      if (!principal) return refuse_stranger(authorization);
      if (is_head_) return refuse(405, "INVALID_REQUEST", "events are read with GET");
      return begin_events(principal, query, plain(request["Last-Event-ID"]));
    }
    if (is_get && path.starts_with(kBlobsPath)) {
      if (!principal) return refuse_stranger(authorization);
      return begin_download(principal, path, query);
    }
    if (is_get && !principal && !is_open_to_all(path)) return refuse_stranger(authorization);
    if (!principal) keep_alive_ = false;  // a stranger does not stay
    if (auto page = is_get ? pages_(path, principal) : std::nullopt) {
      if (page->look) {
        auto operation = std::make_unique<PageOperation>(std::move(*page));
        page_ = &operation->page;
        return begin(std::move(operation));
      }
      if (page->content.size() > Desk::kSmall && desk_.is_flooded()) return refuse(Desk::flooded());
      return answer(page->status, page->type, page->content, page->status == 503 ? seconds(1) : Duration{});
    }
    return refuse(404, path.starts_with(kPrefix) ? "UNKNOWN_COMMAND" : "NOT_FOUND",
                  "there is nothing here; /v1/openapi.json lists what there is");
  }
  if (!principal) return refuse_stranger(authorization);
  if (!is_get && request.method() != http::verb::post)
    return refuse(405, "INVALID_REQUEST", "use POST, or GET for questions");
  if (is_get && verb->permission != Permission::query)
    return refuse(405, "INVALID_REQUEST", "this changes something: use POST");

  JsonArguments read;
  const Status good =
      is_get ? read.read_query(verb->parameters, query) : read.read_object(verb->parameters, request.body());
  if (!good) return refuse(good.error());
  if (!principal->may(verb->permission, read.ns()))
    return refuse_permission(*principal, verb->permission, read.ns());
  auto operation = make_operation(*verb, read.ns(), read.arguments());
  if (const auto& complaint = read.arguments().complaint()) return refuse(*complaint);
  if (verb->permission == Permission::admin) {
    const AuditedAction action{principal->name(), from_, std::string(verb->name), read.arguments().listed(),
                               read.ns()};
    if (auto noted = desk_.audit(*operation, action); !noted) return refuse(noted.error());
  }
  ++desk_.counters.commands[verb->name];
  asker_ = principal;
  asked_for_ = verb->permission;
  asked_in_ = read.ns();
  begin(std::move(operation));
}

void HttpSession::begin(std::unique_ptr<Operation> operation) {
  operation_ = operation.get();
  beginning_ = true;
  desk_.accept(std::move(operation), *this);
  beginning_ = false;
}

void HttpSession::access_changed() {
  const bool is_certified = certified_ && asker_ == certified_;
  if (certified_) certified_ = access_.find_certified(certified_->name());
  if (!is_waiting()) return;
  asker_ = is_certified ? certified_ : access_.renew(asker_);
  if (asker_ && asker_->may(asked_for_, asked_in_)) return;
  if (operation_ != nullptr) desk_.abandon(*std::exchange(operation_, nullptr));
  closing_ = true;
}

void HttpSession::begin_events(const PrincipalRef& principal, std::string_view query,
                               std::string_view last_id) {
  JsonArguments read;
  if (auto good = read.read_query(event_parameters(), query); !good) return refuse(good.error());
  if (!principal->may(Permission::query, read.ns()))
    return refuse_permission(*principal, Permission::query, read.ns());
  EventFilter filter{.ns = read.ns(), .queue = std::string(read.arguments().text("queue"))};
  if (read.arguments().has("task")) {
    filter.task = desk_.find(read.ns(), read.arguments().task("task"));
    if (const auto& complaint = read.arguments().complaint()) return refuse(*complaint);
    if (filter.task == core::TaskId{})
      return refuse({Errc::not_found, fmt::format("no such task: {}", read.arguments().text("task"))});
  }
  std::optional<core::Lsn> seen;
  if (!last_id.empty()) {
    const auto [end, error] =
        std::from_chars(last_id.data(), last_id.data() + last_id.size(), seen.emplace());
    if (error != std::errc{} || end != last_id.data() + last_id.size())
      return refuse({Errc::invalid_request, "Last-Event-ID is not one that was given here"});
  }
  events_ = std::make_unique<EventStream>(desk_.events, output_, changed_);
  if (!desk_.events.watch(*events_, std::move(filter), seen, desk_.now())) {
    events_.reset();
    return refuse(
        {Errc::exhausted, fmt::format("{} watch already, as many as may", EventFeed::kWatchersMax)});
  }
  asker_ = principal;
  asked_for_ = Permission::query;
  asked_in_ = read.ns();
  output_ +=
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: "
      "close\r\n\r\n";
}

// A web page can make its reader's browser ask, where the reader may. A page of another site names itself as
// the origin; one whose name was made to point here names itself as the host, which matters where no token
// is asked for.
bool HttpSession::is_meant_for_us(std::string_view host, std::string_view origin) const {
  const std::size_t scheme = origin.find("://");
  if (!origin.empty() && (scheme == std::string_view::npos || origin.substr(scheme + 3) != host))
    return false;
  return access_.needs_token() || has_certificate_ || host.empty() || is_loopback_name(host);
}

PrincipalRef HttpSession::principal_of(std::string_view authorization) {
  constexpr std::string_view kBearer = "Bearer ";
  if (!access_.needs_token()) return access_.everyone();
  if (!authorization.starts_with(kBearer)) return certified_;
  PrincipalRef found = access_.find("", authorization.substr(kBearer.size()));
  is_known_ = is_known_ || found != nullptr;
  return found;
}

void HttpSession::refuse_other_site() { refuse(403, "NOPERM", "a page of another site may not ask here"); }

void HttpSession::refuse_stranger(std::string_view authorization) {
  const std::string_view word = authorization.empty() ? "NOAUTH" : "WRONGPASS";
  refuse(401, word, "give a token that is known here, as Authorization: Bearer TOKEN");
}

void HttpSession::refuse_permission(const Principal& principal, Permission permission, std::string_view ns) {
  refuse(403, "NOPERM",
         fmt::format("'{}' may not {} in namespace '{}'", principal.name(), name_of(permission), ns));
}

void HttpSession::refuse(const Error& error) {
  ++desk_.counters.rejections[word(error.code)];
  JsonReply reply;
  reply.error(error);
  answer(status_of(error.code), kJson, reply.json(), retry_after(error));
}

void HttpSession::finished(Operation& operation) {
  const std::unique_ptr<Operation> ends_here(&operation);
  operation_ = nullptr;
  const Page* const page = std::exchange(page_, nullptr);
  JsonReply reply;
  operation.reply_to(reply);
  if (const auto& failed = reply.failed()) {
    answer(status_of(failed->code), kJson, reply.json(), retry_after(*failed));
  } else if (page != nullptr) {
    answer(page->status, page->type, page->content);
  } else {
    answer(200, kJson, reply.json());
  }
  if (!beginning_) changed_();
}

void HttpSession::refuse(unsigned status, std::string_view code, std::string_view message) {
  ++desk_.counters.rejections[code];
  JsonReply reply;
  reply.map(1);
  reply.name("error");
  reply.map(2);
  reply.member("code", code);
  reply.member("message", message);
  answer(status, kJson, reply.json());
}

void HttpSession::answer(unsigned status, std::string_view type, std::string_view body,
                         Duration retry_after) {
  const std::string_view end = type == kJson ? "\n" : "";  // for whoever reads it in a terminal
  fmt::format_to(
      std::back_inserter(output_), "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n",
      status, plain(http::obsolete_reason(http::int_to_status(status))), type, body.size() + end.size(),
      retry_after > Duration{} ? fmt::format("Retry-After: {}\r\n", (retry_after.ms + 999) / 1000) : "",
      keep_alive_ ? "" : "Connection: close\r\n");
  if (!is_head_) output_.append(body).append(end);
  closing_ = !keep_alive_;
}

}  // namespace baton::server
