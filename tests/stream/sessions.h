// Sessions of PostgreSQL that are held up in the middle of what they do, so that others meet them there.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "postgres/connection.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {

// The first instance, as SQL.
inline constexpr const char* kOne = "'03000000-0000-0000-0000-000000000001'";

inline void until_somebody_waits(const std::string& url, int sessions = 1) {
  while (std::stoi(ask(url, "select count(distinct pid)::text from pg_locks where not granted")) < sessions)
    std::this_thread::yield();
}

// A session in the middle of a transaction.
inline std::unique_ptr<postgres::Connection> session(const std::string& url, const std::string& begun) {
  auto opened = postgres::Connection::open(url, seconds(5));
  const bool is_open = opened && (*opened)->execute("begin; " + begun);
  EXPECT_TRUE(is_open) << begun;
  return is_open ? std::move(*opened) : nullptr;
}

}  // namespace baton::stream
