#include "server/stream_operation.h"

#include <algorithm>
#include <utility>

#include "core/stream/outlook.h"

namespace baton::server {
namespace {

constexpr std::string_view kVerdicts[] = {"ok", "lost_lease", "unknown", "duplicate"};

void write_verdicts(ReplyWriter& reply, std::string_view name, const core::Verdicts& verdicts) {
  reply.name(name);
  reply.list(verdicts.size());
  for (const stream::Verdict verdict : verdicts) reply.text(kVerdicts[static_cast<std::size_t>(verdict)]);
}

// While too much is not read, work goes on message by message.
std::optional<stream::ClaimRequest> fitting(std::optional<stream::ClaimRequest> claim, const Desk& desk) {
  if (claim && desk.is_flooded()) claim->limits.messages = 1;
  return claim;
}

void write_work(ReplyWriter& reply, const stream::Work& work) {
  reply.map(work.stream ? 18 : 17);
  reply.member("lane", work.lane == stream::Lane::outbox ? "outbox" : "inbox");
  reply.member("message", stream::to_text(work.message.value));
  reply.member("epoch", static_cast<std::uint64_t>(work.epoch.value));
  if (work.stream) reply.member("stream", stream::to_text(work.stream->value));
  reply.name("partition"), reply.number(work.partition);
  reply.member("sequence", static_cast<std::uint64_t>(work.sequence));
  reply.member("target", work.target);
  reply.member("type", work.type);
  reply.member("envelope_type", work.envelope_type);
  reply.member("data", work.data);
  reply.member("metadata", work.metadata);
  reply.member("scope", work.scope);
  reply.name("status"), reply.number(static_cast<std::int32_t>(work.status));
  reply.name("flags"), reply.number(static_cast<std::int32_t>(work.flags));
  reply.name("deliveries"), reply.number(work.deliveries);
  reply.name("failures"), reply.number(work.failures);
  reply.name("reason"), reply.number(static_cast<std::int32_t>(work.reason));
  reply.member("error", work.error);
}

}  // namespace

void GivenWork::take(std::vector<core::GivenMessage> given, std::vector<engine::SharedBytes> bodies) {
  given_ = std::move(given);
  bodies.resize(given_.size());
  read_.clear();
  for (engine::SharedBytes& body : bodies) read_.push_back({std::move(body), nullptr});
  is_left_out_.assign(given_.size(), false);
}

void GivenWork::fetch(Desk& desk, Operation& operation) const {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (read_[i].body == nullptr) desk.fetch(operation, 2 * i, given_[i].body);
    if (given_[i].error.length > 0) desk.fetch(operation, 2 * i + 1, given_[i].error);
  }
}

void GivenWork::fetched(Desk& desk, Operation& operation, std::size_t index, Result<Bytes> bytes) {
  const std::size_t which = index / 2;
  core::GivenMessage& given = given_[which];
  const bool is_body = index % 2 == 0;
  if (bytes) {
    (is_body ? read_[which].body : read_[which].error) = std::make_shared<const Bytes>(std::move(*bytes));
    return;
  }
  if (bytes.error().code == Errc::not_found && is_body) {
    // Copied forward after it was handed out, and the old segment has gone.
    const core::BlobRef now = desk.body_of(given.number);
    if (now.length > 0 && now != std::exchange(given.body, now)) return desk.fetch(operation, index, now);
  }
  if (!is_body || is_left_out_[which]) return;
  desk.note("message " + stream::to_text(given.message.value) +
            ": its body cannot be read: " + bytes.error().message + "; it counts as failed");
  desk.ask(engine::unreadable_of(ns_, instance_, given_, which, bytes.error(), is_left_out_));
}

core::ByLane<std::vector<stream::Completion>> GivenWork::given_back() const {
  core::ByLane<std::vector<stream::Completion>> all;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (is_left_out_[i]) continue;
    all[given_[i].lane].push_back(
        {.held = {given_[i].message, stream::Epoch{static_cast<std::int64_t>(given_[i].epoch)}}});
  }
  return all;
}

void GivenWork::write(ReplyWriter& reply) const {
  reply.list(static_cast<std::size_t>(std::ranges::count(is_left_out_, false)));
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (is_left_out_[i]) continue;
    const auto work = engine::work_of(given_[i], read_[i].body, [&](const core::BlobRef&) {
      return read_[i].error ? Result<Bytes>(*read_[i].error) : Result<Bytes>(Bytes{});
    });
    work ? write_work(reply, *work) : reply.error(work.error());
  }
}

void StreamOperation::begin(Desk& desk) {
  asked_at_ = desk.now();
  call_.claim = fitting(claim_, desk);
  core::Request request = std::move(call_);
  desk.ask(*this, 0, request);
}

void StreamOperation::answered(Desk& desk, std::size_t, engine::Answer&& answer) {
  lsn_ = answer.lsn;
  if (!answer.reply) {
    if (!std::exchange(is_again_, true)) error_ = answer.reply.error();  // else what was said first stands
    return;
  }
  auto& processed = std::get<core::WorkProcessed>(*answer.reply);
  work_.take(std::move(processed.work), std::move(answer.bodies));
  if (!std::exchange(is_again_, true)) processed_ = std::move(processed);
  if (!work_.empty()) return work_.fetch(desk, *this);
  if (wait_ <= Duration{}) return;
  if (!deadline_) deadline_ = desk.now() + wait_;
  desk.wait_for_stream(*this, ns_, instance_, {asked_at_, lsn_}, *deadline_);
}

// From the second time on only the claim is left: everything else was said.
void StreamOperation::wake(Desk& desk, bool time_is_up) {
  if (time_is_up) return;
  asked_at_ = desk.now();
  core::Request request = core::ProcessWork{.ns = ns_, .instance = instance_, .claim = fitting(claim_, desk)};
  desk.ask(*this, 0, request);
}

void StreamOperation::fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) {
  work_.fetched(desk, *this, index, std::move(bytes));
}

// The instance never heard of this work; the next one need not wait until its leases end. Unless it has asked
// meanwhile what it holds, as one does that waited in vain for a slow disk: then it is at work.
void StreamOperation::abandoned(Desk& desk) {
  if (work_.empty() || desk.authority().engine().has_resumed(ns_, instance_, work_.claim())) return;
  desk.ask(core::ProcessWork{.ns = ns_, .instance = instance_, .completions = work_.given_back()});
}

void StreamOperation::write(ReplyWriter& reply) {
  if (error_) return reply.error(*error_);
  const std::pair<std::string_view, const core::Verdicts*> lists[] = {
      {"outbox_completions", &processed_.completions.outbox},
      {"inbox_completions", &processed_.completions.inbox},
      {"outbox_failures", &processed_.failures.outbox},
      {"inbox_failures", &processed_.failures.inbox},
      {"receptor_completions", &processed_.receptors.completed},
      {"receptor_failures", &processed_.receptors.failed},
      {"perspective_completions", &processed_.perspectives.completed},
      {"perspective_failures", &processed_.perspectives.failed},
      {"outbox_renewals", &processed_.renewals.outbox},
      {"inbox_renewals", &processed_.renewals.inbox},
      {"new_outbox_messages", &processed_.messages.outbox},
      {"new_inbox_messages", &processed_.messages.inbox},
  };
  reply.map(4 + std::size(lists));
  reply.member("lsn", lsn_);
  reply.name("rank"), reply.number(processed_.standing.rank);
  reply.name("active"), reply.number(processed_.standing.active);
  for (const auto& [name, verdicts] : lists) write_verdicts(reply, name, *verdicts);
  reply.name("work");
  work_.write(reply);
}

void StreamWaitOperation::begin(Desk& desk) {
  since_ = desk.now() - ago_;
  deadline_ = desk.now() + wait_;
  desk.look(*this);
}

void StreamWaitOperation::look(engine::Engine& engine) {
  lsn_ = engine.state().last;
  looked_at_ = engine.now();
  const auto service = engine::service_of(engine.state(), ns_, instance_);
  if (!service) {
    error_ = service.error();
    return;
  }
  has_news_ = core::outlook(engine.state(), engine.rules().streams, *service, since_, engine.now()).has_news;
}

void StreamWaitOperation::looked(Desk& desk) {
  if (error_ || has_news_ || time_is_up_ || wait_ <= Duration{}) return;
  desk.wait_for_stream(*this, ns_, instance_, {looked_at_, lsn_}, deadline_);
}

void StreamWaitOperation::wake(Desk& desk, bool time_is_up) {
  time_is_up_ = time_is_up;
  desk.look(*this);
}

void StreamWaitOperation::write(ReplyWriter& reply) {
  if (error_) return reply.error(*error_);
  reply.map(2);
  reply.member("lsn", lsn_);
  reply.name("woken"), reply.boolean(has_news_);
}

void ResumeOperation::look(engine::Engine& engine) {
  lsn_ = engine.state().last;
  auto held = engine::held_by(engine.state(), ns_, instance_, {cursor_, kMessagesMax, kBytesMax});
  if (!held) {
    error_ = held.error();
    return;
  }
  engine.note_resumption(ns_, instance_);
  cursor_ = held->next;
  work_.take(std::move(held->messages));
}

void ResumeOperation::looked(Desk& desk) { work_.fetch(desk, *this); }

void ResumeOperation::fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) {
  work_.fetched(desk, *this, index, std::move(bytes));
}

void ResumeOperation::write(ReplyWriter& reply) {
  if (error_) return reply.error(*error_);
  reply.map(3);
  reply.member("lsn", lsn_);
  reply.name("work");
  work_.write(reply);
  reply.member("cursor", cursor_);
}

}  // namespace baton::server
