// Workers that are reserved: they run what names a capability of their own, as `gpu`, and leave to others
// what any machine could do.
//
// A coordinator hands out whatever a worker's capabilities suffice for. So being there for anything is a
// capability too, which nobody has to know of: workers that are not reserved have it, the master among them,
// and a module requires it unless it names a capability that machines do not have by themselves. It is added
// where modules are handed out and where workers register, and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::pipeline {

inline constexpr std::string_view kUnreserved = "unreserved";

// All of these take capabilities that are canonical, and return such.

// What a worker has to offer for a module that names these.
std::vector<std::string> required_of_workers(std::vector<std::string> named);
// What a worker offers that is not reserved.
std::vector<std::string> with_unreserved(std::vector<std::string> capabilities);
// As people know them.
std::vector<std::string> without_unreserved(std::vector<std::string> capabilities);
bool is_reserved(const std::vector<std::string>& offered);
// What a reserved worker is reserved for.
std::vector<std::string> beyond_detected(std::vector<std::string> capabilities);
// INVALID_REQUEST: a reserved worker with these would never have anything to do.
Status check_reserved(const std::vector<std::string>& capabilities);

}  // namespace baton::pipeline
