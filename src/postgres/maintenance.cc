#include "postgres/maintenance.h"

#include "postgres/errors.h"
#include "postgres/migrations.h"

namespace baton::postgres {
namespace {

// Whether there may be more: one of the tasks has done all that it may at once.
constexpr Statement kMaintain{"maintain",
                              "select coalesce(sum(affected), 0)::bigint, coalesce(bool_or(affected >= "
                              "10000), false)::integer from wh_maintain(10000)"};

}  // namespace

Result<std::uint64_t> maintain(Connection& connection, std::stop_token stop) {
  std::uint64_t forgotten = 0;
  for (bool goes_on = true; goes_on && !stop.stop_requested();) {
    auto rows = connection.run(std::vector<Call>{{kMaintain, {}}}, stop);
    if (!rows) return std::unexpected(error_of(rows.error()));
    forgotten += static_cast<std::uint64_t>(rows->front().int8(0, 0));
    goes_on = rows->front().int4(0, 1) != 0;
  }
  return forgotten;
}

Result<std::uint64_t> maintain(const std::string& url) {
  auto opened = Connection::open(url, seconds(5));
  if (!opened) return std::unexpected(error_of(opened.error()));
  if (auto fits = check_version(**opened); !fits) return std::unexpected(fits.error());
  return maintain(**opened);
}

}  // namespace baton::postgres
