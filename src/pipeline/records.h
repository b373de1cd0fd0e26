// What is kept of runs, in a folder beside the pipeline: for `logs`, `why`, `list` and `rerun`, and for
// estimates.
//
//   .baton/history/FILE.json                 how long the modules of that pipeline file took
//   .baton/runs/RUN/pipeline.json            the file's text and parameters, and the fingerprint of the graph
//   .baton/runs/RUN/journal                  a line of JSON for each module that is over, as soon as it is
//   .baton/runs/RUN/progress                 likewise for each that changes its state before it is over
//   .baton/runs/RUN/report.json              at the end; one without it is not removed, for it may run
//   .baton/runs/RUN/master                   locked by the master while it lives
//   .baton/runs/RUN/logs/MODULE.log
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "pipeline/report.h"
#include "pipeline/run.h"
#include "pipeline/secrets.h"

namespace baton::pipeline {

// A pipeline file as it was run: all that another machine, or a later run, needs.
struct FileDefinition {
  std::string path;
  std::string text;
  std::map<std::string, std::string> parameters;
  Selection selection;
};
BATON_FIELDS(FileDefinition, path, text, parameters, selection)

struct KeptRun {
  std::string run;
  FileDefinition file;
  std::uint64_t fingerprint = 0;
  std::optional<std::vector<std::string>> capabilities;  // that the master was said to have
};
BATON_FIELDS(KeptRun, run, file, fingerprint, capabilities)

struct JournalLine {
  std::string module;
  std::string status;  // as a word
  std::string value;   // encoded, if it has one
  std::string reason;
  std::string worker;
  Duration took;
  std::optional<BlobRef> blob;  // where the value is, if it is large
  std::vector<ArtifactRef> artifacts;
  std::string cache;  // why its result was taken from an earlier run, or was not
  std::optional<std::uint32_t> attempt;
  std::optional<std::uint32_t> tries;
  std::optional<ModuleFailure> failure;
  // Of one that has not ended: how often it had before, where a run was gone on with. None: never.
  std::optional<std::uint32_t> ended_before;
};
BATON_FIELDS(JournalLine, module, status, value, reason, worker, took, blob, artifacts, cache, attempt, tries,
             failure, ended_before)

// A run in a few words.
struct PastRun {
  static constexpr const char* kRunning = "running";
  static constexpr const char* kInterrupted =
      "interrupted";  // its master is gone, and has not said how it ended

  std::string run;
  std::string file;
  std::string state;  // how it ended, or one of those
  std::string reason;
  Instant began_at;                   // by the wall clock
  Duration took;                      // once it is over
  std::size_t ended = 0, failed = 0;  // modules
};

class Records : public RunObserver {
 public:
  // Kept under `folder`/.baton, unless it cannot be written: then nothing is kept, and trouble() says why.
  Records(std::string folder, FileDefinition file, Secrets secrets = {},
          std::vector<std::string> capabilities = {});
  ~Records() override;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  // For as long as this process lives, however it ends. False: another process is the master of that run. One
  // of which nothing can be kept is anybody's.
  bool hold(const std::string& run);

  void began(const Graph& graph, const std::string& run) override;
  void changed(const ModuleReport& report, const std::shared_ptr<const void>& value) override;
  void said(const LogLine& line) override;
  void ended(const RunReport& report) override;

  // That it begins, durably.
  Status note_beginning(const ModuleReport& report);

  const std::string& trouble() const { return trouble_; }
  // With what modules came to, as far as that is not large, and without secrets.
  std::string json_of(const RunReport& report) const;

  // The folder in which all of it is: for nobody else, since what modules came to is kept as it is.
  static void make_home(const std::string& folder);

  static History history(const std::string& folder, const std::string& file);
  static std::vector<std::string> runs(const std::string& folder);              // newest last
  static bool others_go_on(const std::string& folder, const std::string& run);  // with a master that lives
  static Result<KeptRun> kept(const std::string& folder, const std::string& run);
  static Result<PastRun> past(const std::string& folder, const std::string& run);
  // Where modules stand that have not ended, by the last that was told of them.
  static std::map<std::string, JournalLine> under_way(const std::string& folder, const std::string& run);
  // Of those, the ones that were given to workers, or run, whatever was told of them since.
  static std::set<std::string> handed_out(const std::string& folder, const std::string& run);
  // One line for each module: the last, where a run was gone on with.
  static std::vector<JournalLine> journal(const std::string& folder, const std::string& run);
  static Result<std::string> log(const std::string& folder, const std::string& run,
                                 const std::string& module);
  static std::string cache(const std::string& folder);
  // Where the master and workers of a run meet that are all on this machine; goes with what is kept of it.
  static std::string meeting(const std::string& folder, const std::string& run);
  static std::string blobs(const std::string& folder);  // where artifacts and large results are
  static std::set<std::string> blobs_named(const std::string& folder);  // by runs that are remembered
  static Result<std::string> report(const std::string& folder, const std::string& run);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  bool append(File& file, const std::string& path, const std::string& line);  // false: trouble() says why
  JournalLine progress_line(const ModuleReport& report) const;
  Status make_durable();
  void keep(const std::string& path, const std::string& text);

  const std::string folder_;
  const FileDefinition file_;
  const Secrets secrets_;
  const std::vector<std::string> capabilities_;
  const Graph* graph_ = nullptr;
  std::string directory_;  // of the run
  std::string trouble_;
  File journal_;
  File progress_;
  std::optional<Status> is_durable_;  // the run itself, once that was asked for
  std::map<std::string, File> logs_;
  std::map<std::string, std::string> values_;  // by module
  std::map<std::string, std::uint32_t> ends_;  // likewise, of this run, by earlier masters too
  Descriptor held_;
  History history_;
};

}  // namespace baton::pipeline
