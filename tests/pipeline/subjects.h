// Runs on each of the coordinators that come with baton, for the contract.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/contract.h"

namespace baton::pipeline {

struct Transport {
  std::string name;
  std::unique_ptr<contract::Subject> (*make)();  // null: it cannot be had here
};

const std::vector<Transport>& transports();

}  // namespace baton::pipeline
