// Results of earlier runs, by what they depended on. A module that declares its inputs is not run again while
// they, its command, the variables it names and the results that it needs are what they were.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/graph.h"

namespace baton::pipeline {

// What a result depends on: a hash for each, by a name that people understand ("input src/a.cc").
using Circumstances = std::map<std::string, std::string>;

// As they are now; `assignment` has what the module needs. Input files are looked for below `directory`.
Result<Circumstances> circumstances(const GraphNode& node, const ModuleAssignment& assignment,
                                    const std::string& directory, const std::stop_token& stop = {});

struct CachedResult {
  std::string run;  // that it is from
  Circumstances circumstances;
  Carried value;
  std::vector<ArtifactRef> artifacts;
};

struct CacheAnswer {
  std::optional<CachedResult> found;
  std::string why;  // or why not: "input src/a.cc changed"
};

// In a folder: a file for each module, with the last few results. Used by one thread at a time.
class Cache {
 public:
  // `blobs_folder` has artifacts and large values, also after the run whose they were is forgotten elsewhere.
  Cache(std::string folder, std::string blobs_folder)
      : blobs(std::move(blobs_folder)), folder_(std::move(folder)) {}

  CacheAnswer look_up(const std::string& module, const Circumstances& now) const;
  Status keep(const std::string& module, CachedResult result) const;
  Result<std::set<std::string>> blobs_named() const;

  FolderBlobs blobs;

 private:
  std::vector<CachedResult> known(const std::string& path) const;
  std::string path_of(const std::string& module) const;

  const std::string folder_;
};

// What is different, as a person would say it: "input src/a.cc changed, input src/b.cc is new".
std::string difference(const Circumstances& then, const Circumstances& now);

}  // namespace baton::pipeline
