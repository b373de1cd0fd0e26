// How checkpoints are shown, to people and to programs.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/catalog.h"
#include "checkpoint/difference.h"
#include "checkpoint/retention.h"
#include "cli/complaint.h"
#include "cli/json_object.h"

namespace baton::cli {

void print_attempts(const std::vector<checkpoint::Attempt>& attempts, Format format);
void print_metadata(const checkpoint::CheckpointMetadata& metadata, Format format);
void print_difference(const checkpoint::Difference& difference, Format format);
void print_removed(const checkpoint::Removed& removed, checkpoint::Really really, Format format);

std::string json_list(const std::vector<std::string>& texts);

}  // namespace baton::cli
