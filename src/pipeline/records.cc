#include "pipeline/records.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "base/pause.h"
#include "base/system_error.h"
#include "pipeline/report_json.h"
#include "pipeline/shared_files.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRunsKept = 20;
constexpr std::size_t kLogsOpen = 64;

std::string base(const std::string& folder) { return (folder.empty() ? "." : folder) + "/.baton"; }
std::string history_path(const std::string& folder, const std::string& file) {
  return base(folder) + "/history/" + fs::path(file).filename().string() + ".json";
}
std::string run_folder(const std::string& folder, const std::string& run) {
  return base(folder) + "/runs/" + as_file_name(run);
}

Result<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return failure(Errc::not_found, "there is no " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path + ".tmp", std::ios::binary);
  file << text;
  file.close();
  std::error_code trouble;
  if (file) fs::rename(path + ".tmp", path, trouble);
  return file && !trouble;
}

// Whether its last line has no end.
bool is_torn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return file.seekg(-1, std::ios::end) && file.get() != '\n';
}

// Runs in the order in which they began.
std::vector<fs::directory_entry> run_folders(const std::string& folder) {
  std::vector<fs::directory_entry> all;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(base(folder) + "/runs", absent)) {
    if (fs::exists(entry.path() / "pipeline.json", absent)) all.push_back(entry);
  }
  const auto began = [](const fs::directory_entry& entry) {
    std::error_code gone;
    return fs::last_write_time(entry.path() / "pipeline.json", gone);
  };
  std::ranges::sort(all, {}, began);
  return all;
}

// By a master that lives.
bool is_held(const std::string& directory) {
  const Descriptor file(::open((directory + "/master").c_str(), O_RDWR | O_CLOEXEC));
  return file.is_open() && ::flock(file.number(), LOCK_SH | LOCK_NB) != 0;
}

// It is over, or its master was killed long ago.
bool may_go(const fs::path& run) {
  constexpr auto kLongAgo = std::chrono::hours(24 * 7);
  std::error_code absent;
  if (is_held(run.string())) return false;
  if (fs::exists(run / "report.json", absent)) return true;
  const auto last_heard_of = fs::last_write_time(run / "pipeline.json", absent);
  return absent || fs::file_time_type::clock::now() - last_heard_of > kLongAgo;
}

std::vector<JournalLine> lines_in(const std::string& path) {
  std::vector<JournalLine> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (auto read = from_text<JournalLine>(line)) lines.push_back(std::move(*read));  // the last may be torn
  }
  return lines;
}

std::map<std::string, std::uint32_t> ends_in(const std::string& directory) {
  std::map<std::string, std::uint32_t> ends;
  for (const JournalLine& line : lines_in(directory + "/journal")) ++ends[line.module];
  return ends;
}

// Of modules that have not ended since.
std::vector<JournalLine> progress_in(const std::string& directory) {
  std::vector<JournalLine> lines = lines_in(directory + "/progress");
  const auto ends = ends_in(directory);
  std::erase_if(lines, [&](const JournalLine& line) {
    const auto ended = ends.find(line.module);
    return ended != ends.end() && ended->second > line.ended_before.value_or(0);
  });
  return lines;
}

JournalLine line_of(const ModuleReport& report) {
  JournalLine line{.module = report.id,
                   .status = std::string(word(report.status)),
                   .reason = report.reason.empty() ? report.failure.message : report.reason,
                   .worker = report.worker,
                   .took = report.took,
                   .blob = report.blob,
                   .artifacts = report.artifacts,
                   .cache = report.cache,
                   .attempt = report.attempt,
                   .tries = report.tries};
  if (report.failure.kind != FailureKind::none) line.failure = report.failure;
  return line;
}

// Of report.json.
struct ToldOfRun {
  std::string outcome;
  std::string reason;
  std::int64_t began_at_ms = 0;
  std::int64_t took_ms = 0;
};
BATON_FIELDS(ToldOfRun, outcome, reason, began_at_ms, took_ms)

}  // namespace

Records::Records(std::string folder, FileDefinition file, Secrets secrets,
                 std::vector<std::string> capabilities)
    : folder_(std::move(folder)),
      file_(std::move(file)),
      secrets_(std::move(secrets)),
      capabilities_(std::move(capabilities)),
      history_(history(folder_, file_.path)) {}
Records::~Records() = default;

void Records::make_home(const std::string& folder) {
  (void)::mkdir(base(folder).c_str(), 0700);  // whoever uses it says what is wrong
}

std::string Records::json_of(const RunReport& report) const { return to_json(report, values_, secrets_); }

void Records::began(const Graph& graph, const std::string& run) {
  graph_ = &graph;
  directory_ = run_folder(folder_, run);
  std::error_code trouble;
  make_home(folder_);
  fs::create_directories(directory_ + "/logs", trouble);
  const KeptRun kept{run, file_, graph.fingerprint(), capabilities_};
  if (trouble || !write(directory_ + "/pipeline.json", to_text(kept))) {
    trouble_ = "nothing is kept of this run: " + directory_ + " cannot be written";
    directory_.clear();
    return;
  }
  ends_ = ends_in(directory_);
  if (!held_.is_open()) (void)hold(run);             // elsewhere, the coordinator says who the master is
  fs::remove(directory_ + "/report.json", trouble);  // of the same run, that is gone on with: it is not over
  // Nobody wants this in a repository.
  if (!fs::exists(base(folder_) + "/.gitignore", trouble)) write(base(folder_) + "/.gitignore", "*\n");
  const auto folders = run_folders(folder_);
  for (std::size_t i = 0; i + kRunsKept < folders.size(); ++i) {
    if (may_go(folders[i].path())) fs::remove_all(folders[i].path(), trouble);
  }
}

bool Records::hold(const std::string& run) {
  make_home(folder_);
  const std::string directory = run_folder(folder_, run);
  std::error_code trouble;  // whoever writes there says what is wrong
  fs::create_directories(directory, trouble);
  held_ = Descriptor(::open((directory + "/master").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!held_.is_open()) return true;
  // Whoever looks whether it is held has it for a moment.
  for (int tries = 10; ::flock(held_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; --tries) {
    if (tries == 0) return false;
    pause(milliseconds(10), {});
  }
  return true;
}

// On a line of its own: the last one before may be torn, if its master was killed or the disk was full.
bool Records::append(File& file, const std::string& path, const std::string& line) {
  std::string whole = line + "\n";
  if (!file) {
    file.reset(std::fopen(path.c_str(), "ae"));
    if (is_torn(path)) whole.insert(0, 1, '\n');
  }
  const bool is_kept = file && std::fwrite(whole.data(), 1, whole.size(), file.get()) == whole.size() &&
                       std::fflush(file.get()) == 0;
  if (is_kept) return true;
  file.reset();
  if (trouble_.empty()) trouble_ = path + " cannot be written: some of this run is not kept";
  return false;
}

// All by which a later master knows the run. What could not be synced once may be gone, whatever is said of
// it later.
Status Records::make_durable() {
  const std::string path = directory_ + "/pipeline.json";
  const Descriptor file(open_again(path, O_RDONLY, 0));
  if (!file.is_open() || ::fsync(file.number()) != 0)
    return std::unexpected(system_error(errno, "sync", path));
  const std::string runs = parent_of(directory_);
  for (const std::string& name : {path, directory_, runs, parent_of(runs)}) {
    if (!sync_name(name)) return std::unexpected(system_error(errno, "sync", parent_of(name)));
  }
  return {};
}

Status Records::note_beginning(const ModuleReport& report) {
  if (directory_.empty()) return failure(Errc::io_failed, trouble_);
  const std::string path = directory_ + "/progress";
  if (!append(progress_, path, to_text(progress_line(report))))
    return failure(Errc::io_failed, path + " cannot be written");
  if (::fdatasync(::fileno(progress_.get())) != 0) return std::unexpected(system_error(errno, "sync", path));
  if (!is_durable_) is_durable_ = make_durable();
  return *is_durable_;
}

void Records::keep(const std::string& path, const std::string& text) {
  if (!write(path, text) && trouble_.empty())
    trouble_ = path + " cannot be written: some of this run is not kept";
}

JournalLine Records::progress_line(const ModuleReport& report) const {
  JournalLine line = line_of(report);
  if (const auto before = ends_.find(report.id); before != ends_.end()) line.ended_before = before->second;
  return line;
}

void Records::changed(const ModuleReport& report, const std::shared_ptr<const void>& value) {
  const ResultType& type = (*graph_)[report.node].spec->result;
  JournalLine line = line_of(report);
  if (is_final(report.status) && value && type.travels() && !report.blob) {
    if (auto carried = carry(type, value.get(), nullptr, {}))
      line.value = values_[report.id] = std::move(carried->text);
  }
  if (directory_.empty()) return;
  if (!is_final(report.status)) {
    append(progress_, directory_ + "/progress", to_text(progress_line(report)));
    return;
  }
  ++ends_[report.id];
  append(journal_, directory_ + "/journal", to_text(line));
  logs_.erase(report.id);
  if (report.status == ModuleStatus::succeeded) {
    Duration& known = history_[report.id];
    known = known > Duration{} ? Duration{(known.ms * 2 + report.took.ms) / 3} : report.took;
  }
}

void Records::said(const LogLine& line) {
  if (directory_.empty()) return;
  if (logs_.size() > kLogsOpen) logs_.clear();
  append(logs_[line.module], directory_ + "/logs/" + as_file_name(line.module) + ".log", line.text);
}

void Records::ended(const RunReport& report) {
  if (directory_.empty()) return;
  keep(directory_ + "/report.json", json_of(report));
  Value::Fields fields;
  for (const auto& [module, took] : history_) fields.emplace_back(module, Value{took.ms});
  std::error_code trouble;  // whoever writes there says what is wrong
  fs::create_directories(base(folder_) + "/history", trouble);
  keep(history_path(folder_, file_.path), pipeline::to_json(Value{std::move(fields)}));
}

History Records::history(const std::string& folder, const std::string& file) {
  History history;
  const auto text = contents(history_path(folder, file));
  const auto value = text ? from_text<std::map<std::string, Duration>>(*text) : Result<History>(History());
  return value ? *value : history;
}

std::vector<std::string> Records::runs(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : run_folders(folder)) {
    if (const auto text = contents(entry.path() / "pipeline.json")) {
      if (const auto kept = from_text<KeptRun>(*text)) names.push_back(kept->run);
    }
  }
  return names;
}

bool Records::others_go_on(const std::string& folder, const std::string& run) {
  const std::string own = run_folder(folder, run);
  return std::ranges::any_of(run_folders(folder), [&](const fs::directory_entry& entry) {
    return entry.path().filename() != fs::path(own).filename() && is_held(entry.path().string());
  });
}

Result<KeptRun> Records::kept(const std::string& folder, const std::string& run) {
  const auto text = contents(run_folder(folder, run) + "/pipeline.json");
  if (!text) return failure(Errc::not_found, "there is no run '" + run + "' in " + base(folder));
  auto kept = from_text<KeptRun>(*text);
  // Wherever the folder has been moved to since.
  std::error_code trouble;
  if (kept)
    kept->file.path =
        (fs::absolute(folder, trouble) / fs::path(kept->file.path).filename()).lexically_normal();
  return kept;
}

Result<PastRun> Records::past(const std::string& folder, const std::string& run) {
  const auto kept = Records::kept(folder, run);
  if (!kept) return std::unexpected(kept.error());
  const std::string directory = run_folder(folder, run);
  PastRun past{.run = run, .file = kept->file.path};
  for (const JournalLine& line : journal(folder, run)) {
    ++past.ended;
    if (line.status == word(ModuleStatus::failed) || line.status == word(ModuleStatus::timed_out))
      ++past.failed;
  }
  const auto text = contents(directory + "/report.json");
  const auto told = text ? from_text<ToldOfRun>(*text) : Result<ToldOfRun>(failure(Errc::not_found, ""));
  if (told) {
    past.state = told->outcome;
    past.reason = told->reason;
    past.began_at = {told->began_at_ms};
    past.took = {told->took_ms};
    return past;
  }
  struct stat file{};
  if (::stat((directory + "/pipeline.json").c_str(), &file) == 0)
    past.began_at = {std::int64_t{file.st_mtim.tv_sec} * 1000};
  past.state = is_held(directory) ? PastRun::kRunning : PastRun::kInterrupted;
  return past;
}

std::map<std::string, JournalLine> Records::under_way(const std::string& folder, const std::string& run) {
  std::map<std::string, JournalLine> all;
  for (JournalLine& line : progress_in(run_folder(folder, run))) all[line.module] = std::move(line);
  return all;
}

std::set<std::string> Records::handed_out(const std::string& folder, const std::string& run) {
  std::set<std::string> all;
  for (const JournalLine& line : progress_in(run_folder(folder, run))) {
    if (line.status == word(ModuleStatus::queued) || line.status == word(ModuleStatus::running))
      all.insert(line.module);
  }
  return all;
}

std::vector<JournalLine> Records::journal(const std::string& folder, const std::string& run) {
  std::vector<JournalLine> lines;
  std::map<std::string, std::size_t> known;  // where in them a module is
  for (JournalLine& line : lines_in(run_folder(folder, run) + "/journal")) {
    const auto [at, is_new] = known.try_emplace(line.module, lines.size());
    if (is_new)
      lines.push_back(std::move(line));
    else
      lines[at->second] = std::move(line);
  }
  return lines;
}

Result<std::string> Records::log(const std::string& folder, const std::string& run,
                                 const std::string& module) {
  return contents(run_folder(folder, run) + "/logs/" + as_file_name(module) + ".log");
}

std::string Records::cache(const std::string& folder) { return base(folder) + "/cache"; }
std::string Records::meeting(const std::string& folder, const std::string& run) {
  return run_folder(folder, run) + "/meeting";
}
std::string Records::blobs(const std::string& folder) { return base(folder) + "/blobs"; }

std::set<std::string> Records::blobs_named(const std::string& folder) {
  std::set<std::string> named;
  for (const std::string& run : runs(folder)) {
    for (const JournalLine& line : journal(folder, run)) {
      if (line.blob) named.insert(line.blob->hash);
      for (const ArtifactRef& artifact : line.artifacts) named.insert(artifact.blob.hash);
    }
  }
  return named;
}

Result<std::string> Records::report(const std::string& folder, const std::string& run) {
  return contents(run_folder(folder, run) + "/report.json");
}

}  // namespace baton::pipeline
