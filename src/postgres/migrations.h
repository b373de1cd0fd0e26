// The schema of streams on PostgreSQL, and how a database gets it.
//
// Each file in src/postgres/sql is one version, and is part of the library. A file that was released is never
// changed; what comes later is a new file.
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
// others wait. Returns how many versions were added. A database that is newer than this program is refused.
Result<int> migrate(const std::string& url);

// Whether the database and this program speak of the same tables.
class Connection;
Status check_version(Connection& connection);

}  // namespace baton::postgres
