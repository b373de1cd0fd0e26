#include "pipeline/cache_clerk.h"

#include <filesystem>
#include <utility>

#include "base/random_name.h"
#include "pipeline/archive.h"

namespace baton::pipeline {
namespace {

Status copy(BlobStore& from, BlobStore& to, const BlobRef& blob, const std::stop_token& stop) {
  auto put = to.put([&](const ByteSink& into) { return fetch(from, blob, into, stop); }, stop);
  if (!put) return std::unexpected(put.error());
  return {};
}

}  // namespace

CacheClerk::CacheClerk(const Graph& graph, const Site& site, Cache& cache, bool puts_files_back,
                       Answered answered)
    : graph_(graph),
      site_(site),
      cache_(cache),
      puts_files_back_(puts_files_back),
      answered_(std::move(answered)),
      thread_([this] { run(); }) {}

CacheClerk::~CacheClerk() {
  if (thread_.joinable()) finish({});
}

void CacheClerk::finish(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { hurry(); });
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

void CacheClerk::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return is_over_ || !work_.empty(); });
    if (work_.empty()) return;
    const auto work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void CacheClerk::ask(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  arrived_.notify_one();
}

bool CacheClerk::takes(NodeIndex node, const std::function<Result<ModuleAssignment>()>& assignment) {
  const ModuleSpec& spec = *graph_[node].spec;
  if (spec.cache.empty() || !spec.result.travels() || !taken_.insert(node).second) return false;
  auto needed = assignment();
  if (!needed) return false;  // a result that it needs has no form that could be compared
  ask([this, node, needed = std::move(*needed)] { answered_(node, look_up(node, needed)); });
  return true;
}

CacheAnswer CacheClerk::look_up(NodeIndex node, const ModuleAssignment& assignment) {
  if (hurry_.stop_requested()) return {{}, "the run was stopped before it was looked up"};
  auto now = circumstances(graph_[node], assignment, site_.directory, hurry_.get_token());
  if (!now) return {{}, now.error().message};
  CacheAnswer answer = cache_.look_up(graph_[node].id, *now);
  if (answer.found) {
    if (auto brought = bring(*answer.found); !brought)
      answer = {{}, "its result is gone: " + brought.error().message};
  }
  if (!answer.found) looked_up_[node] = {assignment, std::move(*now)};
  return answer;
}

// To where this run has its blobs, and its files to where they were.
Status CacheClerk::bring(const CachedResult& result) {
  if (result.value.blob) {
    if (auto done = bring(*result.value.blob); !done) return done;
  }
  for (const ArtifactRef& artifact : result.artifacts) {
    auto done = puts_files_back_ ? put_files_back(artifact.blob) : Status{};
    if (done && !(puts_files_back_ && is_one_place())) done = bring(artifact.blob);
    if (!done) return done;
  }
  return {};
}

// Where it need not be brought anywhere it is looked at all the same: whoever needs it could do nothing but
// fail if it is not what it was.
Status CacheClerk::bring(const BlobRef& blob) {
  const std::stop_token stop = hurry_.get_token();
  if (is_one_place())
    return noted(blob, fetch(cache_.blobs, blob, [](std::string_view) { return Status{}; }, stop));
  const auto known = site_.blobs->has(blob, stop);
  return known && *known ? Status{} : noted(blob, copy(cache_.blobs, *site_.blobs, blob, stop));
}

Status CacheClerk::put_files_back(const BlobRef& blob) {
  const std::string archive =
      (std::filesystem::path(site_.directory) / (".baton-" + random_name() + ".tar")).string();
  auto done = noted(blob, fetch_file(cache_.blobs, blob, archive, hurry_.get_token()));
  if (done) done = unpack_archive(archive, site_.directory, hurry_.get_token());
  std::error_code absent;
  std::filesystem::remove(archive, absent);
  return done;
}

Status CacheClerk::noted(const BlobRef& blob, Status done) {
  if (!done && done.error().code == Errc::corrupt) damaged_.insert(blob.hash);
  return done;
}

Status CacheClerk::store(const CachedResult& result) {
  if (result.value.blob) {
    if (auto done = store(*result.value.blob); !done) return done;
  }
  for (const ArtifactRef& artifact : result.artifacts) {
    if (auto done = store(artifact.blob); !done) return done;
  }
  return {};
}

Status CacheClerk::store(const BlobRef& blob) {
  const auto known = cache_.blobs.has(blob, hurry_.get_token());
  if (!known) return std::unexpected(known.error());
  if (*known && (is_one_place() || !damaged_.contains(blob.hash))) return {};
  if (is_one_place()) return failure(Errc::not_found, "it is no longer in " + cache_.blobs.place());
  return copy(*site_.blobs, cache_.blobs, blob, hurry_.get_token());
}

void CacheClerk::keep(NodeIndex node, const Carried& value, const std::vector<ArtifactRef>& artifacts) {
  ask([this, node, value, artifacts] {
    const auto known = looked_up_.find(node);
    if (known == looked_up_.end() || hurry_.stop_requested()) return;
    const LookedUp before = std::move(known->second);
    looked_up_.erase(known);
    // What changed while it ran may or may not have been what it saw.
    const auto now = circumstances(graph_[node], before.assignment, site_.directory, hurry_.get_token());
    if (!now || *now != before.circumstances) return;
    CachedResult result{site_.run, *now, value, artifacts};
    if (auto stored = store(result); !stored) return;  // it is run again the next time
    (void)cache_.keep(graph_[node].id, std::move(result));
  });
}

}  // namespace baton::pipeline
