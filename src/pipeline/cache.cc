#include "pipeline/cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "pipeline/artifacts.h"
#include "pipeline/glob.h"
#include "pipeline/shared_files.h"
#include "pipeline/wire_text.h"
#include "wire/sha256.h"

namespace baton::pipeline {

BATON_FIELDS(Carried, text, blob)
BATON_FIELDS(CachedResult, run, circumstances, value, artifacts)

namespace {

constexpr std::size_t kKeptPerModule = 8;
constexpr std::size_t kDifferencesTold = 3;

std::string hash_of(std::string_view text) {
  wire::Sha256 sum;
  sum.add(text);
  return sum.hex();
}

std::string hash_of(const std::vector<std::string>& texts) {
  wire::Sha256 sum;
  for (const std::string& text : texts) sum.add(std::to_string(text.size()) + " " + text);
  return sum.hex();
}

// A link is where it leads to, and what is there. Whatever is no file may never come to an end, as a pipe.
Result<std::string> hash_of_input(const std::string& directory, const std::string& name,
                                  const std::stop_token& stop) {
  namespace fs = std::filesystem;
  const fs::path path = fs::path(directory) / name;
  std::error_code trouble;
  const bool is_link = fs::is_symlink(path, trouble);
  const std::string target = is_link ? fs::read_symlink(path, trouble).string() : "";
  const fs::file_type behind = fs::status(path, trouble).type();
  if (is_link && behind == fs::file_type::not_found) return hash_of(target);
  if (is_link && behind == fs::file_type::directory)
    return failure(
        Errc::invalid_request,
        "its input " + name + " is a link to a folder, where anything may change: name what is in there");
  if (behind != fs::file_type::regular)
    return failure(Errc::invalid_request, "its input " + name + " is no plain file");
  auto measured = measure(bytes_of_file(path), stop);
  if (!measured) return std::unexpected(measured.error());
  return is_link ? hash_of({target, measured->hash}) : measured->hash;
}

}  // namespace

Result<Circumstances> circumstances(const GraphNode& node, const ModuleAssignment& assignment,
                                    const std::string& directory, const std::stop_token& stop) {
  const ModuleSpec& spec = *node.spec;
  Circumstances all;
  all["its command"] = hash_of(spec.cache.parts);
  all["the form of its result"] = hash_of(spec.result.schema);
  std::vector<std::string> produced;
  for (const Produced& one : spec.produces) {
    produced.push_back(one.name);
    produced.insert(produced.end(), one.paths.begin(), one.paths.end());
  }
  all["what it produces"] = hash_of(produced);
  std::vector<std::string> consumed;
  for (const Consumed& one : spec.consumes)
    consumed.insert(consumed.end(), {one.producer, one.name, on_target(one.into, node)});
  if (!consumed.empty()) all["where it finds what it consumes"] = hash_of(consumed);
  if (node.target) {
    for (const auto& [axis, value] : node.target->axes) all["axis " + axis] = hash_of(value);
  }
  for (const std::string& pattern : spec.cache.existence) {
    const std::string path = on_target(pattern, node);
    std::error_code absent;
    all["whether " + path + " exists"] =
        std::filesystem::exists(std::filesystem::path(directory) / path, absent) ? "yes" : "no";
  }
  for (const std::string& name : spec.cache.environment) {
    const char* value = std::getenv(name.c_str());
    all["variable " + name] = value != nullptr ? hash_of(value) : "";
  }
  for (const DependencyResult& needed : assignment.dependencies) {
    all["the result of " + needed.module] =
        hash_of({std::string(word(needed.status)), needed.value, needed.blob ? needed.blob->hash : ""});
  }
  for (const ArtifactRef& artifact : assignment.artifacts)
    all["artifact '" + artifact.name + "' of " + artifact.module] = artifact.blob.hash;
  std::size_t files = 0;
  for (const std::string& pattern : spec.cache.files) {
    const auto matching = files_matching(directory, pattern);
    files += matching.size();
    const bool is_name = pattern.find_first_of("*?") == std::string::npos;
    if (matching.empty() && is_name)
      return failure(Errc::not_found, "its input " + pattern + " is not there");
    for (const std::string& file : matching) {
      auto hash = hash_of_input(directory, file, stop);
      if (!hash) return std::unexpected(hash.error());
      all["input " + file] = std::move(*hash);
    }
  }
  // Nothing would ever change: rather a pattern that was meant to match something.
  if (files == 0 && !spec.cache.files.empty() && assignment.dependencies.empty())
    return failure(Errc::not_found, "there is no file that its inputs match");
  return all;
}

std::string difference(const Circumstances& then, const Circumstances& now) {
  std::vector<std::string> all;
  for (const auto& [what, hash] : now) {
    const auto before = then.find(what);
    if (before == then.end())
      all.push_back(what + " is new");
    else if (before->second != hash)
      all.push_back(what + " changed");
  }
  for (const auto& [what, hash] : then) {
    if (!now.contains(what)) all.push_back(what + " is gone");
  }
  // What a person changed comes before what follows from it.
  std::ranges::stable_sort(all, {}, [](const std::string& text) { return !text.starts_with("input "); });
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kDifferencesTold; ++i) text += (i == 0 ? "" : ", ") + all[i];
  if (all.size() > kDifferencesTold)
    text += " and " + std::to_string(all.size() - kDifferencesTold) + " more";
  return text;
}

std::string Cache::path_of(const std::string& module) const { return as_file_name(module) + ".json"; }

std::vector<CachedResult> Cache::known(const std::string& path) const {
  const auto text = SharedFiles(folder_).read(path);
  auto read = text ? from_text<std::vector<CachedResult>>(*text) : Result<std::vector<CachedResult>>();
  return text && read ? std::move(*read) : std::vector<CachedResult>();  // one that cannot be read is none
}

CacheAnswer Cache::look_up(const std::string& module, const Circumstances& now) const {
  std::vector<CachedResult> all = known(path_of(module));
  if (all.empty()) return {{}, "no result of it is known yet"};
  const auto same = std::ranges::find(all, now, &CachedResult::circumstances);
  if (same == all.end())
    return {{}, difference(all.back().circumstances, now) + " since run " + all.back().run};
  std::string why = "nothing it depends on has changed since run " + same->run;
  return {std::move(*same), std::move(why)};
}

Status Cache::keep(const std::string& module, CachedResult result) const {
  const SharedFiles files(folder_);
  if (auto made = files.make_folder("."); !made) return made;
  std::vector<CachedResult> all = known(path_of(module));
  std::erase_if(all, [&](const CachedResult& one) { return one.circumstances == result.circumstances; });
  all.push_back(std::move(result));
  if (all.size() > kKeptPerModule) all.erase(all.begin());
  return files.write(path_of(module), to_text(all));
}

Result<std::set<std::string>> Cache::blobs_named() const {
  const auto paths = SharedFiles(folder_).list(".");
  if (!paths) return std::unexpected(paths.error());
  std::set<std::string> named;
  for (const std::string& path : *paths) {
    for (const CachedResult& one : known(path)) {
      if (one.value.blob) named.insert(one.value.blob->hash);
      for (const ArtifactRef& artifact : one.artifacts) named.insert(artifact.blob.hash);
    }
  }
  return named;
}

}  // namespace baton::pipeline
