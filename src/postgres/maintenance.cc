#include "postgres/maintenance.h"

#include "postgres/errors.h"
#include "postgres/migrations.h"

namespace baton::postgres {
namespace {

// Whether there may be more: one of the tasks has done all that it may at once.
constexpr Statement kMaintain{"maintain",
                              "select coalesce(sum(affected), 0)::bigint, coalesce(bool_or(affected >= "
                              "10000), false)::integer from wh_maintain(10000, $1::bigint * interval '1 "
                              "millisecond')"};

}  // namespace

std::expected<Maintained, Trouble> maintain(Connection& connection, Duration unless_within,
                                            std::stop_token stop) {
  const std::vector<Call> calls{{kMaintain, std::move(Arguments().add(unless_within.ms))}};
  auto rows = connection.run(calls, stop);
  if (!rows) return std::unexpected(rows.error());
  return Maintained{.forgotten = static_cast<std::uint64_t>(rows->front().int8(0, 0)),
                    .has_more = rows->front().int4(0, 1) != 0};
}

Result<std::uint64_t> maintain(const std::string& url) {
  auto opened = Connection::open(url, seconds(5));
  if (!opened) return std::unexpected(error_of(opened.error()));
  if (auto fits = check_version(**opened); !fits) return std::unexpected(fits.error());
  std::uint64_t forgotten = 0;
  for (bool goes_on = true; goes_on;) {
    const auto done = maintain(**opened, {});
    if (!done) return std::unexpected(error_of(done.error()));
    forgotten += done->forgotten;
    goes_on = done->has_more;
  }
  return forgotten;
}

}  // namespace baton::postgres
