#include "server/resp_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/request_operation.h"
#include "server/resp_reply.h"

namespace baton::server {
namespace {

constexpr std::size_t kUntoldMax = 256;  // lost leases of one connection
// Of whoever has not said who it is.
constexpr wire::RespLimits kStranger{.arguments_max = 64, .command_bytes_max = 16 << 10};

// Replies that are written already. What they tell of is not on disk yet.
class WrittenReplies final : public Operation {
  void begin(Desk& desk) override { desk.await_disk(*this); }
  void write(ReplyWriter&) override {}
};

}  // namespace

RespSession::~RespSession() {
  desk_.forget(*this);
  for (const Slot& slot : slots_) {
    if (slot.operation != nullptr) desk_.abandon(*slot.operation);
  }
}

bool RespSession::wants_more() const {
  return may_begin() && (half_bytes() <= Desk::kSmall || !desk_.is_full_of_halves());
}

std::size_t RespSession::half_bytes() const {
  return (input_.empty() ? 0 : input_.capacity()) + caller_.transaction.bytes() + executing_bytes_;
}

bool RespSession::may_begin() const {
  const bool is_slow = desk_.is_crowded() || (questions > 0 && desk_.has_many_questions());
  const std::size_t under_way_max = is_slow ? 1 : desk_.limits.under_way_max;
  return !closing_ && !rests_ && blocking_ == nullptr && under_way_ < under_way_max &&
         output_.size() + held_bytes_ < desk_.output_bytes_max();
}

void RespSession::give_up() {
  if (!is_halfway() || !is_idle()) return;
  wire::RespWriter reply(output_, caller_.version);
  if (wants_more()) {
    refuse(reply, "PROTOCOL_ERROR", "half a command came, and too little more for too long");
  } else {
    refuse(reply, "EXHAUSTED", "too much has come in part, of all connections; retry_after_ms=1000");
  }
  closing_ = true;
}

// By the name in it, whatever tokens that name has.
void RespSession::certified(std::string_view name) {
  if (!access_.needs_token()) return;
  const PrincipalRef found = access_.find_certified(name);
  if (!found) return;
  auto place = desk_.principals.enter(found->name(), desk_.limits.connections_per_principal_max);
  if (!place) return;  // it may still say that it is somebody else
  caller_.place = std::move(*place);
  caller_.principal = caller_.certified = found;
}

void RespSession::access_changed() {
  const bool is_certified = caller_.certified && caller_.principal == caller_.certified;
  if (caller_.certified) caller_.certified = access_.find_certified(caller_.certified->name());
  caller_.principal = is_certified ? caller_.certified : access_.renew(caller_.principal);
  if (!is_waiting() || (caller_.principal && caller_.principal->may(waits_for_, caller_.ns))) return;
  const auto slot = std::ranges::find(slots_, blocking_, &Slot::operation);  // news may stand behind it
  desk_.abandon(*slot->operation);
  slots_.erase(slot, slots_.end());
  executing_.clear();
  executing_bytes_ = 0;
  blocking_ = nullptr;
  closing_ = true;
}

// Whole commands are read where they lie; only the beginning of one that is not whole is kept.
void RespSession::receive(std::string_view bytes) {
  if (input_.empty()) {
    input_ = bytes.substr(run_commands(bytes));
  } else {
    input_ += bytes;
    resume();
  }
  halves_.set(half_bytes());
}

void RespSession::resume() {
  if ((input_.empty() && executing_.empty()) || running_) return;
  const std::size_t done = run_commands(input_);
  if (done == input_.size()) {
    std::string().swap(input_);  // an idle connection costs little
  } else {
    input_.erase(0, done);
    if (blocking_ != nullptr) input_.shrink_to_fit();  // it may stay so for long
  }
  halves_.set(half_bytes());
}

// Returns how many bytes of `input` are done with.
std::size_t RespSession::run_commands(std::string_view input) {
  running_ = true;
  const std::uint64_t enough = desk_.counters.lanes_looked_at + Desk::kLanesAtOnce;
  std::size_t done = 0;
  while (may_begin()) {
    if (desk_.counters.lanes_looked_at >= enough && !slots_.empty()) {
      rests_ = true;
      break;
    }
    if (!executing_.empty()) {
      run_next_of_exec();
      continue;
    }
    parser_.set_limits(caller_.principal ? desk_.limits.command : kStranger);
    const auto found = parser_.parse(input.substr(done));
    if (found == wire::RespParser::Found::nothing) {
      done += parser_.consumed();
      break;
    }
    if (found == wire::RespParser::Found::broken) {
      std::string text;
      wire::RespWriter reply(text, caller_.version);
      refuse(reply, "PROTOCOL_ERROR", parser_.complaint());
      closing_ = true;
      put(std::move(text));
      break;
    }
    if (!parser_.arguments().empty()) run(parser_.arguments());
    done += parser_.consumed();
  }
  end_gathering();
  running_ = false;
  return done;
}

void RespSession::run(std::span<const std::string_view> words) {
  const Verb* verb = find_verb(words[0]);
  if (verb == nullptr && (same_word(words[0], "post") || same_word(words[0], "host:")))
    return hang_up_on_a_browser();
  std::string text;
  std::unique_ptr<Operation> operation;
  if (verb != nullptr) {
    if (caller_.transaction.is_open()) return keep(words, prepare(*verb, words, text) != nullptr, text);
    const auto* make = std::get_if<MakeRequest*>(&verb->make);
    // What an operator does may have to wait for its line in the audit file, which only an operation can.
    if (make != nullptr && verb->permission != Permission::admin) return run_request(*verb, **make, words);
    operation = prepare(*verb, words, text);
    waits_for_ = verb->permission;
  } else if (const RedisCommand* command = find_own(words, text)) {
    if (caller_.transaction.is_open() && !command->at_once) return keep(words, true, text);
    operation = command->run({desk_, access_, caller_, words, text});
    // Where there is much to say, nothing else was done.
    if (text.size() > Desk::kSmall && desk_.is_flooded()) {
      ++desk_.counters.rejections[word(Errc::exhausted)];
      text.clear();
      RespReply(text, caller_.version).error(Desk::flooded());
    }
    closing_ = closing_ || caller_.leaves;
    if (std::exchange(caller_.executes, false)) return execute();
  } else if (caller_.transaction.is_open()) {
    return keep(words, false, text);
  }
  operation ? begin(std::move(operation)) : put(std::move(text));
}

// A web page can make its reader's browser send requests here, with commands in their bodies.
void RespSession::hang_up_on_a_browser() {
  std::string text;
  wire::RespWriter reply(text, caller_.version);
  refuse(reply, "PROTOCOL_ERROR", "this is HTTP; here the Redis protocol is spoken");
  closing_ = true;
  put(std::move(text));
}

// One request, whose answer is the reply. If it can be decided on the spot there is no operation: the reply
// is written, and waits for the disk with those before and behind it.
void RespSession::run_request(const Verb& verb, MakeRequest& make, std::span<const std::string_view> words) {
  std::string text;
  wire::RespWriter reply(text, caller_.version);
  if (!reads(verb, words, reply)) return put(std::move(text));
  core::Request request = make(caller_.ns, arguments_);
  if (complained(reply)) return put(std::move(text));
  ++desk_.counters.commands[verb.name];
  const engine::Answer* answer = desk_.decide(request);
  if (answer == nullptr) return begin(std::make_unique<RequestOperation>(std::move(request)));
  if (!gathering_) {
    auto gathering = std::make_unique<WrittenReplies>();
    add({.operation = gathering.get(), .weight = 0});
    gathering_ = std::move(gathering);
  }
  Slot& slot = slots_.back();
  const std::size_t before = slot.text.size();
  RespReply written(slot.text, caller_.version);
  write_answer(written, *answer);
  held_bytes_ += slot.text.size() - before;
  ++slot.weight;
  ++under_way_;
}

// What is written behind it is not part of it.
void RespSession::end_gathering() {
  if (gathering_) desk_.accept(std::move(gathering_), *this);
}

void RespSession::begin(std::unique_ptr<Operation> operation) {
  if (operation->is_blocking() || operation->is_audited()) blocking_ = operation.get();
  add({.operation = operation.get(), .version = caller_.version, .weight = operation->weight()});
  desk_.accept(std::move(operation), *this);
}

bool RespSession::reads(const Verb& verb, std::span<const std::string_view> words, wire::RespWriter& reply) {
  if (!may(verb, reply)) return false;
  const Status read = arguments_.read(verb.parameters, words.subspan(1));
  if (!read) refuse(reply, word(read.error().code), read.error().message);
  return read.has_value();
}

bool RespSession::complained(wire::RespWriter& reply) const {
  const auto& complaint = arguments_.complaint();
  if (complaint) refuse(reply, word(complaint->code), complaint->message);
  return complaint.has_value();
}

// The operation, or nothing if `text` has the refusal.
std::unique_ptr<Operation> RespSession::prepare(const Verb& verb, std::span<const std::string_view> words,
                                                std::string& text) {
  wire::RespWriter reply(text, caller_.version);
  if (!reads(verb, words, reply)) return {};
  if (is_of_exec_) arguments_.replace(verb.parameters, "wait_ms", "0");
  auto operation = make_operation(verb, caller_.ns, arguments_);
  if (complained(reply)) return {};
  if (caller_.transaction.is_open()) return operation;  // it is not begun now
  if (verb.permission == Permission::admin) {
    const AuditedAction action{caller_.principal->name(), from_, std::string(verb.name), arguments_.listed(),
                               caller_.ns};
    if (auto noted = desk_.audit(*operation, action); !noted) {
      refuse(reply, word(noted.error().code), noted.error().message);
      return {};
    }
  }
  ++desk_.counters.commands[verb.name];
  return operation;
}

const RedisCommand* RespSession::find_own(std::span<const std::string_view> words, std::string& text) const {
  wire::RespWriter reply(text, caller_.version);
  const RedisCommand* command = find_redis_command(words[0]);
  if (command == nullptr) {
    refuse(reply, "UNKNOWN_COMMAND",
           fmt::format("there is no command '{:.40}'; COMMAND LIST names them", words[0]));
  } else if (!has_right_length(command->arity, words.size())) {
    refuse(reply, "INVALID_REQUEST", fmt::format("wrong number of arguments for '{}'", command->name));
    return nullptr;
  }
  return command;
}

// Within MULTI. What is wrong with a command is said now, and then none of them is begun.
void RespSession::keep(std::span<const std::string_view> words, bool is_good, std::string& text) {
  wire::RespWriter reply(text, caller_.version);
  if (!is_good) {
    caller_.transaction.spoil();
  } else if (desk_.is_full_of_halves()) {
    caller_.transaction.spoil();
    refuse(reply, "EXHAUSTED", "too much has come in part, of all connections; retry_after_ms=1000");
  } else if (caller_.transaction.keep(words)) {
    reply.simple("QUEUED");
  } else {
    caller_.transaction.spoil();
    refuse(reply, "TOO_LARGE", "more between MULTI and EXEC than 4096 commands or 4 MiB");
  }
  put(std::move(text));
}

// Replies leave in the order of their commands, so behind its header the array comes about by itself. Each
// command is begun as if it had come alone: when there is room, and not before one that blocks has ended.
void RespSession::execute() {
  executing_bytes_ = caller_.transaction.bytes();
  for (std::vector<std::string>& command : caller_.transaction.close())
    executing_.push_back(std::move(command));
  std::string header;
  wire::RespWriter(header, caller_.version).array(executing_.size());
  put(std::move(header));
}

void RespSession::run_next_of_exec() {
  const std::vector<std::string> command = std::move(executing_.front());
  executing_.pop_front();
  if (executing_.empty()) executing_bytes_ = 0;
  is_of_exec_ = true;
  run(std::vector<std::string_view>(command.begin(), command.end()));
  is_of_exec_ = blocking_ != nullptr;
  if (executing_.empty() && !late_.empty()) put(std::exchange(late_, {}));
}

bool RespSession::may(const Verb& verb, wire::RespWriter& reply) const {
  if (!caller_.principal) {
    refuse(reply, "NOAUTH", "say who you are first: AUTH token, or AUTH name token");
  } else if (!caller_.principal->may(verb.permission, caller_.ns)) {
    refuse(reply, "NOPERM",
           fmt::format("'{}' may not {} in namespace '{}'", caller_.principal->name(),
                       name_of(verb.permission), caller_.ns));
  } else {
    return true;
  }
  return false;
}

// Nothing comes of it, and it was not even asked.
void RespSession::refuse(wire::RespWriter& reply, std::string_view code, std::string_view message) const {
  ++desk_.counters.rejections[code];
  reply.error(code, message);
}

void RespSession::put(std::string text) {
  if (slots_.empty()) {
    output_ += text;
  } else {
    add({.text = std::move(text)});
  }
}

void RespSession::add(Slot slot) {
  end_gathering();
  under_way_ += slot.weight;
  held_bytes_ += slot.text.size();
  slots_.push_back(std::move(slot));
}

// A push stands between replies, behind those that are due: they may tell of the very lease. It overtakes
// only a command that waits for what may never come, and never stands within an array.
void RespSession::lost(const HeldLease& lease) {
  if (caller_.version < 3) {
    if (untold_.size() == kUntoldMax)
      untold_.erase(untold_.begin());  // its holder learns when he next speaks of it
    untold_.push_back(lease);
    return;
  }
  std::string text;
  wire::RespWriter push(text, caller_.version);
  push.push(3);
  push.bulk("lost");
  push.bulk(core::to_text(lease.task));
  push.bulk(core::to_text(lease.lease));
  if (!executing_.empty()) {
    late_ += text;
    return;
  }
  const bool overtakes = blocking_ != nullptr && blocking_->is_blocking() && !is_of_exec_;
  const auto behind = overtakes ? slots_.end() - 1 : slots_.end();
  if (behind == slots_.begin()) {
    output_ += text;
  } else {
    held_bytes_ += text.size();
    slots_.insert(behind, {.text = std::move(text)});
    ++under_way_;
  }
  changed_();
}

void RespSession::finished(Operation& operation) {
  const std::unique_ptr<Operation> ends_here(&operation);
  const auto slot = std::ranges::find(slots_, &operation, &Slot::operation);
  const bool is_next = slot == slots_.begin();
  if (blocking_ == &operation) {
    blocking_ = nullptr;
    is_of_exec_ = false;
  }
  const std::size_t written = slot->text.size();
  RespReply reply(is_next ? output_ : slot->text, slot->version);  // a reply waits for those before it
  operation.reply_to(reply);
  slot->operation = nullptr;
  held_bytes_ += slot->text.size() - written;
  if (!is_next) return;
  rests_ = false;
  for (; !slots_.empty() && slots_.front().operation == nullptr; slots_.pop_front()) {
    output_ += slots_.front().text;
    held_bytes_ -= slots_.front().text.size();
    under_way_ -= slots_.front().weight;
  }
  if (!running_) changed_();
}

}  // namespace baton::server
