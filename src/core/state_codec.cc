#include "core/state_codec.h"

#include <algorithm>

#include "core/digest.h"
#include "core/holder.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/shelf.h"
#include "core/usage.h"

namespace baton::core {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Which of the optional parts a task has.
enum Part : std::uint8_t { has_options = 1, has_lease = 2, has_payload = 4 };

void write(ByteWriter& out, const BlobRef& blob) {
  out.varint(blob.length);
  if (blob.length == 0) return;
  out.varint(blob.lsn), out.varint(blob.offset), out.fixed(blob.hash);
}

std::uint32_t number(ByteReader& in) {
  const std::uint64_t value = in.varint();
  if (value > UINT32_MAX) in.fail();
  return static_cast<std::uint32_t>(value);
}

template <class Enum>
Enum enumerator(ByteReader& in, Enum last) {
  const auto value = in.fixed<std::uint8_t>();
  if (value > static_cast<std::uint8_t>(last)) in.fail();
  return static_cast<Enum>(value);
}

BlobRef read_blob(ByteReader& in) {
  BlobRef blob;
  blob.length = number(in);
  if (blob.length == 0) return blob;
  blob.lsn = in.varint();
  blob.offset = number(in);
  blob.hash = in.fixed<std::uint64_t>();
  return blob;
}

std::string name(ByteReader& in) {
  const std::string_view text = in.text();
  if (!is_name(text)) in.fail();
  return std::string(text);
}

}  // namespace

bool StateWriter::next(Bytes& bytes) {
  ByteWriter out(bytes);
  if (!head_written_) {
    head_written_ = true;
    head(out);
    return true;
  }
  const std::size_t start = bytes.size();
  while (bytes.size() - start < kPieceBytes && item(out)) {
  }
  return bytes.size() > start;
}

void StateWriter::head(ByteWriter& out) {
  for (Slot slot = 1; slot < state_.queues.end(); ++slot) {
    const Queue& queue = state_.queues[slot];
    if (queue.paused) paused_.push_back(slot);
    lanes_.insert(lanes_.end(), queue.lanes.begin(), queue.lanes.end());
  }
  lane_numbers_.resize(state_.lanes.end());
  out.varint(state_.last);
  out.varint(state_.epoch);
  out.zigzag(state_.time.ms);
  out.fixed(state_.key.low), out.fixed(state_.key.high);
  out.fixed(state_.digest);
  out.varint(paused_.size()), out.varint(lanes_.size()), out.varint(state_.tasks.used());
}

bool StateWriter::item(ByteWriter& out) {
  if (!paused_.empty()) {
    const Queue& queue = state_.queues[paused_.back()];
    paused_.pop_back();
    out.text(queue.ns), out.text(queue.name);
    return true;
  }
  if (!lanes_.empty()) {
    const Lane& lane = state_.lanes[lanes_.back()];
    const Queue& queue = state_.queues[lane.queue];
    lane_numbers_[lanes_.back()] = next_lane_++;
    lanes_.pop_back();
    out.text(queue.ns), out.text(queue.name), out.text(lane.capabilities), out.fixed(lane.priority);
    return true;
  }
  const Slot slot = state_.ids.first_from(next_task_);
  if (slot == 0) return streams_.next(out);
  task(out, state_.tasks[slot]);
  next_task_ = state_.tasks[slot].lsn + 1;
  return true;
}

void StateWriter::task(ByteWriter& out, const Task& task) {
  const auto parts =
      static_cast<std::uint8_t>((task.options != 0 ? has_options : 0) | (task.lease != 0 ? has_lease : 0) |
                                (task.payload.length != 0 ? has_payload : 0));
  out.varint(task.lsn), out.varint(task.epoch), out.varint(lane_numbers_[task.lane]);
  out.fixed(static_cast<std::uint8_t>(task.state)), out.fixed(static_cast<std::uint8_t>(task.dead_reason));
  out.zigzag(task.created_at.ms), out.zigzag(task.since.ms), out.varint(task.place);
  out.varint(task.attempt), out.varint(task.failures);
  out.fixed(parts);
  if (parts & has_payload) write(out, task.payload);
  if (parts & has_options) {
    const TaskOptions& options = state_.options[task.options];
    out.text(options.key), out.fixed(options.content);
    out.varint(options.retry.max_failures), out.zigzag(options.retry.base.ms);
    out.varint(options.retry.factor_percent), out.zigzag(options.retry.max.ms);
    out.varint(options.retry.jitter_percent), out.varint(options.max_attempts);
    out.zigzag(options.max_hold.ms), out.varint(options.retry_of.epoch), out.varint(options.retry_of.lsn);
  }
  if (parts & has_lease) {
    const Lease& lease = state_.leases[task.lease];
    out.varint(lease.lsn), out.varint(lease.epoch);
    out.zigzag(lease.granted_at.ms), out.zigzag(lease.expiry.ms);
    out.text(worker_of(state_, lease));
  }
  std::uint8_t endings = 0;
  for (Slot slot = task.endings; slot != 0; slot = state_.endings[slot].next) ++endings;
  out.fixed(endings);
  for (Slot slot = task.endings; slot != 0; slot = state_.endings[slot].next) {
    const Ending& ending = state_.endings[slot];
    out.varint(ending.lease), out.varint(ending.lease_epoch);
    out.fixed(static_cast<std::uint8_t>(ending.how)), out.fixed(std::uint8_t{ending.told});
    out.zigzag(ending.retry_at.ms);
    write(out, ending.note);
  }
}

Status StateReader::take(ByteView piece) {
  ByteReader in(piece);
  if (!head_read_) {
    head_read_ = true;
    head(in);
  } else {
    while (in.ok() && in.remaining() > 0) item(in);
  }
  if (!in.finished()) return failure(Errc::corrupt, "a piece of the snapshot cannot be decoded");
  return {};
}

void StateReader::head(ByteReader& in) {
  state_.last = in.varint();
  state_.epoch = number(in);
  state_.time.ms = in.zigzag();
  state_.key.low = in.fixed<std::uint64_t>(), state_.key.high = in.fixed<std::uint64_t>();
  digest_expected_ = in.fixed<std::uint64_t>();
  paused_expected_ = in.varint(), lanes_expected_ = in.varint(), tasks_expected_ = in.varint();
}

void StateReader::item(ByteReader& in) {
  if (paused_expected_ > 0) {
    --paused_expected_;
    paused_queue(in);
  } else if (lanes_.size() < lanes_expected_) {
    LaneName& lane = lanes_.emplace_back();
    lane.ns = name(in), lane.queue = name(in);
    lane.capabilities = in.text();
    lane.priority = in.fixed<std::uint8_t>();
  } else if (state_.tasks.used() == tasks_expected_) {
    streams_.item(in);
  } else if (!task(in)) {
    in.fail();
  }
}

void StateReader::paused_queue(ByteReader& in) {
  const std::string ns = name(in), queue_name = name(in);
  if (!in.ok()) return;
  Queue& queue = state_.queues[make_queue(state_, ns, queue_name)];
  if (queue.paused) return in.fail();
  queue.paused = true;
  state_.digest += paused_hash(queue);
}

bool StateReader::task(ByteReader& in) {
  const Slot slot = state_.tasks.take();
  Task& task = state_.tasks[slot];
  task.lsn = in.varint(), task.epoch = number(in);
  const std::uint32_t lane = number(in);
  task.state = enumerator(in, TaskState::dead);
  task.dead_reason = enumerator(in, DeadReason::attempts_exhausted);
  task.created_at.ms = in.zigzag(), task.since.ms = in.zigzag(), task.place = in.varint();
  task.attempt = number(in), task.failures = number(in);
  const auto parts = in.fixed<std::uint8_t>();
  const bool consistent = (task.state == TaskState::leased) == ((parts & has_lease) != 0);
  if (!in.ok() || lane >= lanes_.size() || task.lsn <= newest_ || !consistent) return in.fail(), false;
  newest_ = task.lsn;

  const LaneName& where = lanes_[lane];
  task.lane = join_lane(state_, where.ns, where.queue, where.capabilities, where.priority);
  if (parts & has_payload) task.payload = read_blob(in);
  count_task(state_, task);
  if (parts & has_options) {
    task.options = state_.options.take();
    TaskOptions& options = state_.options[task.options];
    options.key = in.text(), options.content = in.fixed<std::uint64_t>();
    options.retry.max_failures = number(in), options.retry.base.ms = in.zigzag();
    options.retry.factor_percent = number(in), options.retry.max.ms = in.zigzag();
    options.retry.jitter_percent = number(in), options.max_attempts = number(in);
    options.max_hold.ms = in.zigzag(), options.retry_of.epoch = number(in),
    options.retry_of.lsn = in.varint();
    if (!options.key.empty()) {
      const bool usable = is_name(options.key) && state_.keys.find(ScopedName(where.ns, options.key)) == 0;
      if (!usable) return in.fail(), false;
      state_.keys.insert(ScopedName(where.ns, options.key), slot);
    }
  }
  if (parts & has_lease) {
    task.lease = state_.leases.take();
    Lease& lease = state_.leases[task.lease];
    lease.task = task.lsn, lease.task_slot = slot;
    lease.lsn = in.varint(), lease.epoch = number(in);
    lease.granted_at.ms = in.zigzag(), lease.expiry.ms = in.zigzag();
    const std::string worker = name(in);
    if (!in.ok()) return false;
    start_holding(state_, task.lease, where.ns, worker);
  }
  Slot* link = &task.endings;
  for (auto left = in.fixed<std::uint8_t>(); left > 0 && in.ok(); --left) {
    *link = state_.endings.take();
    Ending& ending = state_.endings[*link];
    ending.task = task.lsn;
    ending.lease = in.varint(), ending.lease_epoch = number(in);
    ending.how = enumerator(in, Ended::dead), ending.told = in.fixed<std::uint8_t>() != 0;
    ending.retry_at.ms = in.zigzag();
    ending.note = read_blob(in);
    state_.digest += fact_hash(ending);
    link = &ending.next;
  }
  state_.ids.append(task.lsn, slot);
  state_.digest += fact_hash(state_, task);
  shelved_.push_back(slot);
  return in.ok();
}

Result<State> StateReader::finish() {
  if (!head_read_ || state_.tasks.used() != tasks_expected_ || !streams_.finish())
    return failure(Errc::corrupt, "the snapshot is incomplete");
  if (state_.digest != digest_expected_)
    return failure(Errc::corrupt, "the snapshot's digest does not match its content");
  // Every shelf is ordered by when a task became eligible, or finished.
  std::ranges::sort(shelved_, [&](Slot a, Slot b) { return is_earlier(state_.tasks[a], state_.tasks[b]); });
  for (const Slot slot : shelved_) shelve(state_, slot, state_.time);
  return std::move(state_);
}

}  // namespace baton::core
