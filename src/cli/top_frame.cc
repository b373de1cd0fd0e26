#include "cli/top_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/quantities.h"
#include "cli/queue_commands.h"
#include "cli/stats.h"
#include "cli/table.h"

namespace baton::cli {
namespace {

constexpr std::size_t kTableLeast = 4;  // lines: a free one, the names, one row, and how many more there are

// Counts may shrink: finished tasks are forgotten, and a coordinator that was started again begins at zero.
std::uint64_t rate(std::uint64_t before, std::uint64_t now, std::int64_t ms) {
  if (now <= before || ms <= 0) return 0;
  return (now - before) * 1000 / static_cast<std::uint64_t>(ms);
}

std::uint64_t finished(const client::QueueView& view) { return view.completed + view.failed + view.dead; }

// How many tasks of each queue end in a second.
class DoneRates {
 public:
  DoneRates(const Sample& before, const Sample& now) : ms_(now.at_ms - before.at_ms) {
    for (const client::QueueView& view : before.queues) earlier_[view.queue] = finished(view);
  }
  std::uint64_t of(const client::QueueView& view) const {
    const auto known = earlier_.find(view.queue);
    return known == earlier_.end() ? 0 : rate(known->second, finished(view), ms_);
  }

 private:
  const std::int64_t ms_;
  std::map<std::string, std::uint64_t> earlier_;
};

struct Rates {
  std::uint64_t commands, refusals, entries, flushes;
};

Rates rates_of(const Sample& before, const Sample& now) {
  const std::int64_t ms = now.at_ms - before.at_ms;
  return {.commands = rate(before.stats.commands, now.stats.commands, ms),
          .refusals = rate(before.stats.refusals, now.stats.refusals, ms),
          .entries = rate(before.stats.flushed_entries, now.stats.flushed_entries, ms),
          .flushes = rate(before.stats.flushes, now.stats.flushes, ms)};
}

Table table_of(const Sample& before, const Sample& now) {
  const DoneRates done(before, now);
  Table table({{"QUEUE"},
               {"WAITING", Align::right},
               {"OF THEM DELAYED", Align::right},
               {"LEASED", Align::right},
               {"DONE/S", Align::right},
               {"COMPLETED", Align::right},
               {"FAILED", Align::right},
               {"DEAD", Align::right},
               {""}});
  std::vector<client::QueueView> queues = now.queues;
  const auto busy = [](const client::QueueView& view) { return view.waiting + view.leased; };
  std::ranges::sort(queues, [&](const client::QueueView& a, const client::QueueView& b) {
    return busy(a) != busy(b) ? busy(a) > busy(b) : a.queue < b.queue;
  });
  for (const client::QueueView& view : queues) {
    table.row({printable(view.queue, 40), std::to_string(view.waiting), std::to_string(view.delayed),
               std::to_string(view.leased), std::to_string(done.of(view)), std::to_string(view.completed),
               std::to_string(view.failed), std::to_string(view.dead), view.paused ? "paused" : ""});
  }
  return table;
}

std::vector<std::string> heading(const Sample& before, const Sample& now, const std::string& where) {
  const client::Stats& stats = now.stats;
  const Rates rates = rates_of(before, now);
  return {
      fmt::format("baton {} at {}   up {}   memory {}   connections {} + {} HTTP", stats.version, where,
                  rough_text(stats.uptime), size_text(stats.memory_bytes), stats.connections_resp,
                  stats.connections_http),
      fmt::format("tasks   {} waiting   {} leased   {} completed   {} failed   {} dead", stats.tasks.waiting,
                  stats.tasks.leased, stats.tasks.completed, stats.tasks.failed, stats.tasks.dead),
      fmt::format("rates   {} commands/s   {} refused/s   {} entries/s   {} flushes/s", rates.commands,
                  rates.refusals, rates.entries, rates.flushes),
      fmt::format("flush   p50 {}   p99 {}   {} entries not yet on disk",
                  milliseconds_text(stats.flush_p50_us), milliseconds_text(stats.flush_p99_us),
                  stats.durable_lag),
  };
}

std::string cut(const std::string& line, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < line.size(); ++end) {
    const bool begins_character = (static_cast<unsigned char>(line[end]) & 0xC0) != 0x80;
    if (begins_character && shown++ == columns) break;
  }
  return line.substr(0, end);
}

// A table under a free line, with as many rows as there is room for, and how many there are besides.
void add_table(std::vector<FrameLine>& frame, std::vector<std::string> lines, std::size_t room) {
  if (lines.size() + 1 > room) {
    if (room < kTableLeast) return;
    const std::size_t hidden = lines.size() + 2 - room;
    lines.resize(room - 2);
    lines.push_back(fmt::format("… and {} more", hidden));
  }
  frame.emplace_back();
  for (std::size_t at = 0; at < lines.size(); ++at) frame.push_back({std::move(lines[at]), at == 0});
}

}  // namespace

std::vector<FrameLine> draw_frame(const Sample& before, const Sample& now, const std::string& where,
                                  const TerminalSize& size, const std::string& trouble) {
  std::vector<FrameLine> frame;
  for (std::string& line : heading(before, now, where)) frame.push_back({std::move(line), frame.empty()});
  if (!trouble.empty()) frame.front().text = trouble;
  std::vector<std::string> queues = table_of(before, now).lines();
  std::vector<std::string> workers = cli::table_of(now.workers).lines();
  const std::size_t lines = size.lines == 0 ? frame.size() + queues.size() + workers.size() + 2 : size.lines;
  const std::size_t room = lines - std::min(lines, frame.size());
  // Queues have two thirds of it, and what the workers do not need.
  const std::size_t for_workers =
      std::min(workers.size() + 1, std::max(room / 3, room - std::min(room, queues.size() + 1)));
  add_table(frame, std::move(queues), room - for_workers);
  add_table(frame, std::move(workers), for_workers);
  if (frame.size() > lines) frame.resize(lines);
  for (FrameLine& line : frame) line.text = cut(line.text, size.columns);
  return frame;
}

std::string frame_json(const Sample& before, const Sample& now) {
  const auto list = [](const auto& all, const auto& to_json) {
    std::string text;
    for (const auto& one : all) text += (text.empty() ? "" : ",") + to_json(one).whole();
    return "[" + text + "]";
  };
  const DoneRates done(before, now);
  const auto queue = [&](const client::QueueView& view) {
    return json_of(view).number("done_per_second", done.of(view));
  };
  const auto worker = [](const client::WorkerView& view) { return json_of(view); };
  const Rates rates = rates_of(before, now);
  JsonObject per_second;
  per_second.number("commands", rates.commands)
      .number("refusals", rates.refusals)
      .number("entries", rates.entries)
      .number("flushes", rates.flushes);
  return JsonObject()
      .object("stats", json_of(now.stats))
      .object("per_second", per_second)
      .literal("queues", list(now.queues, queue))
      .literal("workers", list(now.workers, worker))
      .whole();
}

}  // namespace baton::cli
