// The modules of a definition, by what others call them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"

namespace baton::pipeline {

class ModuleIndex {
 public:
  // The definition outlives it. Of several with one id it knows the first.
  explicit ModuleIndex(const Definition& definition);

  const ModuleSpec* find(const std::string& id) const;
  const std::vector<std::string>& ids() const { return ids_; }
  const std::vector<std::string>& categories() const { return categories_; }

  bool is_unknown(const Need& need) const;  // it names a module that does not exist
  // Those that a need is about.
  std::vector<const ModuleSpec*> selected_by(const Need& need, const ModuleSpec& of) const;
  // Those without which the module does not run.
  std::vector<const ModuleSpec*> required_by(const ModuleSpec& spec) const;
  // Directly or through others. Also if one of them requires what does not exist: that may be it, misspelt.
  bool may_be_required(const ModuleSpec& by, const std::string& id) const;

 private:
  const Definition& definition_;
  std::map<std::string, const ModuleSpec*> specs_;
  std::vector<std::string> ids_;
  std::vector<std::string> categories_;
};

}  // namespace baton::pipeline
