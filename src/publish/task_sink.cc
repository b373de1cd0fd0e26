#include "publish/task_sink.h"

#include <memory>

#include "client/stoppable_answer.h"

namespace baton::publish {

Status TaskSink::publish(const stream::Work& work, std::stop_token lost) {
  if (lost.stop_requested()) return failure(Errc::closed, "stopped; nothing has happened");
  const auto [ns, queue] = destination_of(work.target);
  const auto answer = std::make_shared<client::StoppableAnswer<client::Submitted>>();
  clients_.at(ns).submit({.queue = queue, .payload = work.data, .key = to_text(work.message.value)},
                         [answer](Result<client::Submitted> task) { answer->set(std::move(task)); });
  const auto submitted = answer->wait(lost);
  if (!submitted) return std::unexpected(submitted.error());
  return {};
}

}  // namespace baton::publish
