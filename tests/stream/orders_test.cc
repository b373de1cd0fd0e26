// The example service, three instances of it, killed at random: the books are right in the end.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/crash/child.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using crash::after_ms;
using crash::Child;

struct Staff {
  explicit Staff(std::string database) : url(std::move(database)) {
    for (auto& one : instances) one = hired();
  }
  std::unique_ptr<Child> hired() const {
    auto child = std::make_unique<Child>(crash::ChildOptions{.command = {BATON_ORDERS, "work", url}});
    child->listen(after_ms(30'000), [](const std::string& line) { return line != "open"; });
    return child;
  }
  void kill(std::size_t which) {
    instances[which]->signal(SIGKILL);
    EXPECT_EQ(instances[which]->wait(after_ms(10'000)).signal, SIGKILL);
    instances[which] = hired();
  }

  const std::string url;
  std::unique_ptr<Child> instances[3];
};

std::string books(const std::string& url) {
  return crash::run({.command = {BATON_ORDERS, "books", url}}).lines.at(0);
}

// S21, S22: at random times an instance dies, in the middle of whatever it is doing.
TEST(AShop, HasItsBooksRightHoweverOftenItsInstancesAreKilled) {
  const bool is_long = std::getenv("BATON_LONG") != nullptr;
  const int customers = is_long ? 200 : 20, orders = is_long ? 50 : 10, kills = is_long ? 100 : 6;
  const std::string total = std::to_string(customers * orders);
  const std::string url = empty_database();
  ASSERT_EQ(
      crash::run({.command = {BATON_ORDERS, "open", url, std::to_string(customers), std::to_string(orders)}})
          .exit.code,
      0);
  Staff staff(url);
  std::minstd_rand dice(std::random_device{}());
  int killed_at_work = 0;
  const std::string right = "paid " + total + ", shipped " + total + ", earned " +
                            std::to_string(customers * orders * 5) + ", letters " + total;
  const auto limit = after_ms(is_long ? 1'800'000 : 120'000);
  while (std::chrono::steady_clock::now() < limit) {
    const bool is_done = books(url) == right;
    if (is_done) break;
    // After as much work as chance will have it.
    if (killed_at_work < kills && dice() % 3 == 0) staff.kill(dice() % 3), ++killed_at_work;
  }
  EXPECT_EQ(books(url), right);
  EXPECT_GE(killed_at_work, kills / 2) << "a run in which nobody died shows nothing";
  for (auto& instance : staff.instances) {
    instance->signal(SIGTERM);
    EXPECT_EQ(instance->wait(after_ms(60'000)).code, 0) << instance->errors();
  }
  EXPECT_EQ(ask(url, "select count(*)::text from wh_messages"), "0");
  EXPECT_EQ(ask(url, "select count(*)::text from wh_dead_letters"), "0");
}

}  // namespace
}  // namespace baton::stream
