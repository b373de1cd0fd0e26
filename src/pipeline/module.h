// A module as the rest of the library sees it: what it needs, where and how it may run, and its body, all
// without its types. The typed face is in builder.h; a pipeline file makes these too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/status.h"

namespace baton::pipeline {

class Context;

// What one needed module came to, as the body of the one that needs it gets to see it.
struct Settlement {
  std::string module;
  std::string target;  // of a matrix
  ModuleStatus status = ModuleStatus::waiting;
  std::shared_ptr<const void> value;  // of the module's result type; shared by all who need it
  ModuleFailure failure;
  std::string skipped_because;
};
// One need: a settlement for each instance of a matrix, one for a plain module, none for one that is not part
// of the run.
using Input = std::vector<Settlement>;

enum class NeedKind : std::uint8_t {
  required,  // it succeeded, or failed and was allowed to
  optional,  // it is over, if it is part of the run at all; that it was skipped does not matter
  settled,   // it is over, however it ended
  failed,    // it failed: for what is to be done then
};
enum class NeedBy : std::uint8_t { id, tag, category };

struct Need {
  std::string on;
  NeedBy by = NeedBy::id;
  NeedKind kind = NeedKind::required;
  bool takes_value = false;  // the body cannot be called without it
  std::string where;         // in a file: "ci.yaml:12:3"
};

// One instance of a matrix. The capabilities are those that it needs besides the module's.
struct Target {
  std::string name;
  std::vector<std::string> capabilities;
  std::map<std::string, std::string> axes;
};

// One way in which the instances of a matrix differ.
struct Axis {
  std::string name;
  std::vector<std::string> values;
};
std::vector<Target> combinations(const std::vector<Axis>& axes,
                                 const std::vector<std::string>& as_capabilities);

enum class Priority : std::uint8_t { low, normal, high, critical };
enum class Hint : std::uint8_t { none, cpu, io };  // what it mostly waits for: so many at a time on a machine

struct RetryPolicy {
  std::uint32_t max = 0;               // times after the first
  Duration delay = milliseconds(100);  // doubled each time, and shortened by up to half at random
  Duration delay_max = seconds(30);
  std::function<bool(const ModuleFailure&)> when;  // empty: whatever went wrong
};

// Why not to run it; nothing if it is to run. Asked where the module would run; must have no effects.
using SkipCondition = std::function<std::optional<std::string>(Context&)>;
// Of what it needs. Results that are not at hand are fetched for it only if it looks at them.
struct InputCondition {
  std::function<std::optional<std::string>(Context&, std::span<const Input>)> reason_to_skip;
  bool looks_at_values = false;
};

struct Hooks {
  std::function<void(Context&)> before;  // throws: the body does not run
  std::function<void(Context&, const Settlement&)> after;
  std::function<void(Context&, const Settlement&)> failed;
  std::function<void(Context&, const Settlement&)> skipped;
};

struct Produced {
  std::string name;
  std::vector<std::string> paths;  // files, folders or globs
};
struct Consumed {
  std::string producer;
  std::string name;
  std::string into;   // folder; empty: where the producer had it
  std::string where;  // in a file
};

// What a result depends on besides the results of what the module needs. Nothing given: it is not kept.
struct CacheInputs {
  std::vector<std::string> files;        // globs
  std::vector<std::string> environment;  // names of variables
  std::vector<std::string> parts;        // anything else, as a version of the body
  std::vector<std::string> existence;    // paths: whether something is there
  bool empty() const { return files.empty() && environment.empty() && parts.empty(); }
};

// How a result leaves the process. Empty functions: it stays on the master.
struct ResultType {
  std::string schema;
  std::function<std::string(const void* value)> encode;  // throws if it cannot be written
  std::function<Result<std::shared_ptr<const void>>(std::string_view encoded)> decode;
  bool travels() const { return static_cast<bool>(encode); }
};

inline constexpr Duration kModuleTimeout = minutes(30);
inline constexpr Duration kStopGrace = seconds(10);
inline constexpr std::size_t kModuleIdBytesMax = 100;
inline constexpr std::size_t kTargetsMax = 256;

struct ModuleSpec {
  std::string id;
  std::string description;
  std::string where;  // in a file: "ci.yaml:12:3"

  std::vector<Need> needs;
  std::vector<std::string> capabilities;  // all of them
  std::vector<std::string> preferred;     // by whoever has them, if several could
  std::vector<Target> targets;            // a matrix: an instance each
  bool pinned = false;                    // to the master

  Duration timeout = kModuleTimeout;  // 0: none
  Duration queue_timeout;             // 0: none
  Duration stop_grace = kStopGrace;   // between asking it to stop and no longer waiting for it
  RetryPolicy retry;
  std::uint32_t lost_retries = 1;  // when a worker is lost
  bool idempotent = true;          // false: never begun twice
  bool always_run = false;
  std::function<bool(const ModuleFailure&)> allow_failure;
  std::vector<std::string> allow_failure_on;  // targets
  std::vector<SkipCondition> skip;
  InputCondition skip_by_inputs;  // may be empty; asked after those

  std::vector<std::string> locks;  // not together with another that has one of them
  bool alone = false;              // not together with anything
  std::string pool;
  std::uint32_t weight = 1;  // places in the pool
  Priority priority = Priority::normal;
  Hint hint = Hint::none;
  Duration estimate;  // if there is no history

  std::string category;
  std::vector<std::string> tags;
  std::vector<std::string> secrets;
  CacheInputs cache;
  std::vector<Produced> produces;
  std::vector<Consumed> consumes;
  Hooks hooks;

  std::function<std::shared_ptr<const void>(Context&, std::span<const Input>)> body;  // may throw
  ResultType result;

  bool is_matrix() const { return !targets.empty(); }
};

}  // namespace baton::pipeline
