// Databases for tests, all on one server that is started when the first is wanted.
#pragma once

#include <memory>
#include <string>

#include "tests/stream/backend.h"
#include "tests/stream/cluster.h"

namespace baton::stream {

Cluster& cluster();               // only where Cluster::programs() has something
std::string empty_database();     // without the schema
std::string migrated_database();  // with it, and nothing in it
void stop_cluster();              // at the end of the program
// SQL that makes a user, who belongs to all databases and so may be there already.
std::string user(const std::string& name, const std::string& options = "");
std::string ask(const std::string& url,
                const std::string& sql);  // the first column of the first row, as text
void tell(const std::string& url, const std::string& sql);
void age(const std::string& url, Duration by);  // everything in the database is older by this

}  // namespace baton::stream
