#include "checkpoint/save_check.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "checkpoint/catalog.h"
#include "wire/text.h"

namespace baton::checkpoint {

Status check_name(const std::string& prefix, std::uint64_t step) {
  if (auto fits = check_prefix(prefix); !fits) return fits;
  const auto named = step_in(prefix);
  if (!named || step == 0 || step == *named) return {};
  return failure(
      Errc::invalid_request,
      fmt::format("\"{}\" is called after another step than the {} in its metadata; give it the name "
                  "\"{}\", or one that is no step",
                  prefix, step, step_prefix(step)));
}

Status check_data(const ShardData& mine) {
  for (const TensorSource& tensor : mine.tensors) {
    if (auto fits = check(tensor.info); !fits) return fits;
    if (tensor.data.size() != slice_bytes(tensor.info))
      return failure(
          Errc::invalid_request,
          fmt::format("tensor \"{}\" comes with {} bytes, and its slice {} has {}", tensor.info.name,
                      tensor.data.size(), to_text(tensor.info.slice), slice_bytes(tensor.info)));
  }
  for (const auto& [name, text] : mine.objects) {
    if (!wire::is_utf8(name))
      return failure(
          Errc::invalid_request,
          fmt::format("the name of an object has to be UTF-8, and \"{}\" is not", wire::as_utf8(name)));
    boost::json::error_code wrong;
    (void)boost::json::parse(text, wrong);
    if (wrong)
      return failure(Errc::invalid_request,
                     fmt::format("object \"{}\" is not JSON: {}", name, wrong.message()));
  }
  return {};
}

}  // namespace baton::checkpoint
