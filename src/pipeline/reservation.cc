#include "pipeline/reservation.h"

#include <algorithm>
#include <utility>

#include "pipeline/fleet.h"
#include "pipeline/graph.h"
#include "pipeline/run.h"

namespace baton::pipeline {

std::vector<std::string> with_unreserved(std::vector<std::string> capabilities) {
  capabilities.emplace_back(kUnreserved);
  return canonical(std::move(capabilities));
}

std::vector<std::string> without_unreserved(std::vector<std::string> capabilities) {
  std::erase(capabilities, kUnreserved);
  return capabilities;
}

bool is_reserved(const std::vector<std::string>& offered) {
  return std::ranges::find(offered, kUnreserved) == offered.end();
}

std::vector<std::string> beyond_detected(std::vector<std::string> capabilities) {
  for (const std::string& name : canonical(detected_capabilities())) std::erase(capabilities, name);
  return without_unreserved(std::move(capabilities));
}

std::vector<std::string> required_of_workers(std::vector<std::string> named) {
  return beyond_detected(named).empty() ? with_unreserved(std::move(named)) : named;
}

Status check_reserved(const std::vector<std::string>& capabilities) {
  if (!beyond_detected(capabilities).empty()) return {};
  return failure(Errc::invalid_request, "a reserved worker needs a capability of its own besides " +
                                            joined(detected_capabilities()) +
                                            ": name what it is reserved for with --cap");
}

}  // namespace baton::pipeline
