// A pipeline as a file, for people who write no C++; docs/pipelines.md tells all of it.
//
//   version: 1
//   name: release
//   modules:
//     build: { run: make }
//     test: { needs: [build], caps: [linux], run: make test }
#pragma once

#include <expected>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pipeline/graph.h"
#include "pipeline/pipeline.h"

namespace baton::pipeline {

struct FileParameter {
  std::string name;
  std::optional<std::string> otherwise;
  std::vector<std::string> choices;
  std::string help;
};

// A variable of the environment that a module refers to without a default, or gets as a secret. Each machine
// has its own.
struct AskedVariable {
  std::string name;
  Problem if_unset;  // what is to be said where there is none of that name
};

// Where a problem is that is with the value of a parameter, and not in the file; its name comes behind it.
inline constexpr char kGivenParameter[] = "--param ";

struct PipelineReading;

struct PipelineFile {
  Definition definition;
  std::vector<FileParameter> parameters;
  std::map<std::string, std::string> values;  // of the parameters
  std::vector<AskedVariable> variables;       // as often as they are referred to
  std::vector<AskedVariable> asked_secrets;   // by each module that gets one
  std::set<std::string> conditional;          // ids of modules that have an `if` or `skip_if`
  std::vector<std::string> secrets;           // names; each machine finds the values in its own environment
  std::vector<std::vector<std::string>> workers;  // capabilities of those that are said to be there

  // `path` is for complaints. `given` are parameters by name. Everything that is wrong is told, in the order
  // of the file.
  static PipelineReading read(const std::string& text, const std::string& path,
                              const std::map<std::string, std::string>& given = {});
  static std::expected<PipelineFile, std::vector<Problem>> parse(
      const std::string& text, const std::string& path, const std::map<std::string, std::string>& given = {});
};

// What could be read of a file, and what is wrong with it.
struct PipelineReading {
  PipelineFile file;
  std::vector<Problem> problems;
};

}  // namespace baton::pipeline
