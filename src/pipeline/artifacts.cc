#include "pipeline/artifacts.h"

#include <algorithm>
#include <filesystem>

#include "base/random_name.h"
#include "pipeline/archive.h"
#include "pipeline/fetched_folder.h"
#include "pipeline/glob.h"
#include "pipeline/patiently.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

std::string of_module(const std::string& artifact, const std::string& module) {
  return "artifact '" + artifact + "' of " + module;
}

BlobStore& store_of(const Site& site, const std::string& what) {
  if (site.blobs == nullptr)
    throw ArtifactFailed(what + " has nowhere to go: there is no place for artifacts (--blobs)");
  return *site.blobs;
}

// The instance's target: linux, for build[linux]. Empty: it is not of a matrix.
std::string target_of(const std::string& module) {
  const std::size_t bracket = module.find('[');
  return bracket == std::string::npos ? "" : module.substr(bracket + 1, module.size() - bracket - 2);
}

std::string folder_for(const Site& site, const GraphNode& node, const Consumed& consumed,
                       const std::string& producer) {
  fs::path folder = site.directory.empty() ? "." : site.directory;
  if (!consumed.into.empty()) folder = folder / on_target(consumed.into, node) / target_of(producer);
  return folder.string();
}

// Where modules run it is not for us to tidy up, even if nothing was there once.
bool is_folder_of_run(const Site& site, const std::string& folder) {
  const auto normal = [](const std::string& path) { return (fs::path(path) / "").lexically_normal(); };
  return normal(folder) == normal(site.directory.empty() ? "." : site.directory);
}

void fetch_one(const Site& site, const GraphNode& node, const Consumed& consumed, const ArtifactRef& artifact,
               const std::stop_token& stop) {
  const std::string what = of_module(artifact.name, artifact.module);
  BlobStore& store = store_of(site, what);
  const std::string folder = folder_for(site, node, consumed, artifact.module);
  const std::string archive = folder + "/.baton-" + random_name() + ".tar";
  Status done;
  if (!is_folder_of_run(site, folder)) done = make_ready_for(site.run, folder);
  if (done) done = patiently([&] { return fetch_file(store, artifact.blob, archive, stop); }, stop);
  if (done) done = unpack_archive(archive, folder, stop);
  std::error_code trouble;
  fs::remove(archive, trouble);
  if (!done)
    throw ArtifactFailed(what + " could not be fetched from " + store.place() + " into " + folder + ": " +
                         done.error().message);
}

}  // namespace

std::string on_target(std::string path, const GraphNode& node) {
  if (!node.target) return path;
  for (const auto& [axis, value] : node.target->axes) {
    const std::string name = "${matrix." + axis + "}";
    for (std::size_t at = 0; (at = path.find(name, at)) != std::string::npos; at += value.size())
      path.replace(at, name.size(), value);
  }
  return path;
}

void fetch_artifact(const Site& site, const GraphNode& node, const Consumed& consumed,
                    const std::vector<ArtifactRef>& artifacts, const std::stop_token& stop) {
  std::vector<ArtifactRef> wanted;
  std::ranges::copy_if(artifacts, std::back_inserter(wanted), [&](const ArtifactRef& artifact) {
    return artifact.module.substr(0, artifact.module.find('[')) == consumed.producer &&
           artifact.name == consumed.name;
  });
  if (wanted.empty())
    throw ArtifactFailed(of_module(consumed.name, consumed.producer) +
                         " is not there: that module has stored none");
  const auto is_of_our_target = [&](const ArtifactRef& artifact) {
    return node.target && target_of(artifact.module) == node.target->name;
  };
  const bool has_own = std::ranges::any_of(wanted, is_of_our_target);
  for (const ArtifactRef& artifact : wanted) {
    if (!has_own || is_of_our_target(artifact)) fetch_one(site, node, consumed, artifact, stop);
  }
}

void fetch_artifacts(const Site& site, const GraphNode& node, const std::vector<ArtifactRef>& artifacts,
                     const std::stop_token& stop) {
  for (const Consumed& consumed : node.spec->consumes) fetch_artifact(site, node, consumed, artifacts, stop);
}

ArtifactRef store_artifact(const Site& site, const GraphNode& node, const Produced& produced,
                           const std::stop_token& stop) {
  const std::string what = of_module(produced.name, node.id);
  BlobStore& store = store_of(site, what);
  std::vector<std::string> files;
  for (const std::string& path : produced.paths) {
    const std::string pattern = on_target(path, node);
    const auto matching = files_matching(site.directory, pattern);
    if (matching.empty())
      throw ArtifactFailed(what + ": there is no " + pattern + " in " +
                           (site.directory.empty() ? "the current folder" : site.directory));
    files.insert(files.end(), matching.begin(), matching.end());
  }
  std::ranges::sort(files);
  const auto repeated = std::ranges::unique(files);
  files.erase(repeated.begin(), repeated.end());
  const ByteSource archive = archive_of(site.directory, std::move(files));
  auto blob = patiently([&] { return store.put(archive, stop); }, stop);
  if (!blob)
    throw ArtifactFailed(what + " could not be stored in " + store.place() + ": " + blob.error().message);
  return {node.id, produced.name, std::move(*blob)};
}

std::vector<ArtifactRef> store_artifacts(const Site& site, const GraphNode& node,
                                         std::vector<ArtifactRef> stored, const std::stop_token& stop) {
  for (const Produced& produced : node.spec->produces) {
    if (std::ranges::find(stored, produced.name, &ArtifactRef::name) != stored.end()) continue;
    if (produced.paths.empty())
      throw ArtifactFailed(of_module(produced.name, node.id) +
                           " was not stored: no paths are declared for it, "
                           "and its body did not call store()");
    stored.push_back(store_artifact(site, node, produced, stop));
  }
  return stored;
}

}  // namespace baton::pipeline
