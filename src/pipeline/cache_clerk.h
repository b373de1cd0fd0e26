// Looks modules up in the cache before they are begun, and keeps their results there, on a thread of its own:
// files are hashed and blobs are copied, and the run does not wait for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "pipeline/cache.h"
#include "pipeline/site.h"

namespace baton::pipeline {

class CacheClerk {
 public:
  // Told on the clerk's thread.
  using Answered = std::function<void(NodeIndex node, CacheAnswer answer)>;

  // All outlive it. `puts_files_back`: what a module produced is put where it was, for those who look there.
  CacheClerk(const Graph& graph, const Site& site, Cache& cache, bool puts_files_back, Answered answered);
  ~CacheClerk();  // what was to be kept is kept, unless it was told to hurry
  CacheClerk(const CacheClerk&) = delete;
  CacheClerk& operator=(const CacheClerk&) = delete;

  // True: it is looked up, and an answer comes. Each module is once; only those that declare their inputs.
  bool takes(NodeIndex node, const std::function<Result<ModuleAssignment>()>& assignment);
  // Somebody wants to be gone: what is looked up is not found, and what is not kept yet is not.
  void hurry() { hurry_.request_stop(); }
  // Nothing more comes. Returns when what was to be kept is kept, or `stop` tells it to hurry.
  void finish(const std::stop_token& stop);
  // It was run: what came of it is for the next time.
  void keep(NodeIndex node, const Carried& value, const std::vector<ArtifactRef>& artifacts);

 private:
  void run();
  void ask(std::function<void()> work);
  CacheAnswer look_up(NodeIndex node, const ModuleAssignment& assignment);
  Status bring(const CachedResult& result);
  Status bring(const BlobRef& blob);
  Status put_files_back(const BlobRef& blob);
  // What fetching a blob of the cache came to: one that is damaged is replaced when there is another.
  Status noted(const BlobRef& blob, Status done);
  Status store(const CachedResult& result);
  Status store(const BlobRef& blob);
  bool is_one_place() const { return site_.blobs->place() == cache_.blobs.place(); }

  const Graph& graph_;
  const Site& site_;
  Cache& cache_;
  const bool puts_files_back_;
  const Answered answered_;
  struct LookedUp {
    ModuleAssignment assignment;
    Circumstances circumstances;
  };
  std::map<NodeIndex, LookedUp> looked_up_;  // the thread's own
  std::set<std::string> damaged_;            // likewise: hashes of blobs
  std::set<NodeIndex> taken_;                // the caller's own

  std::stop_source hurry_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> work_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace baton::pipeline
