// Every test of streams that needs a database. Without a server to start there is nothing to be said.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/stream/postgres_backend.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!baton::Cluster::programs()) {
    std::puts("skipped: PostgreSQL 15 or later is not installed (Debian: postgresql)");
    return 77;
  }
  const int result = RUN_ALL_TESTS();
  baton::stream::stop_cluster();
  return result;
}
