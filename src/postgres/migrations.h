// The schema of streams on PostgreSQL, and how a database gets it.
//
// Each file in src/postgres/sql is one version, and is part of the library. A file that was released is never
// changed; what comes later is a new file. Each row of wh_schema_versions says in `serves_from` how old a
// library may be for it: what only adds something still serves those that know nothing of that.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::postgres {

struct Migration {
  int version;
  std::string_view name;
  std::string_view sql;
};
std::span<const Migration> migrations();  // in order; made from the files by the build

// Brings the database to the newest version, in one transaction. Safe to repeat, and for several at once: the
// others wait. Returns how many versions were added: none to a database that is newer than this program, and
// one that does not serve it any more is refused.
Result<int> migrate(const std::string& url);

// Whether the database is as new as this program, and serves it.
class Connection;
Status check_version(Connection& connection);

}  // namespace baton::postgres
