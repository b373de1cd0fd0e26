// The contract on every coordinator that comes with baton, and on one that breaks it.
#include "pipeline/contract.h"

#include <gtest/gtest.h>

#include "tests/pipeline/broken_coordinator.h"
#include "tests/pipeline/subjects.h"

namespace baton::pipeline {
namespace {

class Kept : public ::testing::Test {
 public:
  Kept(const Transport& transport, const contract::Check& check) : transport_(transport), check_(check) {}
  void TestBody() override {
    const auto subject = transport_.make();
    const Status kept = check_.run(*subject);
    EXPECT_TRUE(kept) << check_.promise << ": " << kept.error().message;
  }

 private:
  const Transport& transport_;
  const contract::Check& check_;
};

// Each check is seen to fail on a coordinator that breaks just what it is about.
class Broken : public ::testing::Test {
 public:
  explicit Broken(const contract::Check& check) : check_(check) {}
  void TestBody() override {
    const std::optional<Fault> fault = fault_against(check_.name);
    ASSERT_TRUE(fault) << "no fault is known that this check would notice";
    const auto subject = broken_subject(*fault);
    EXPECT_FALSE(check_.run(*subject)) << "the check did not notice that it is broken";
  }

 private:
  const contract::Check& check_;
};

}  // namespace

// P2, P3, P4, P5, P6, P7, P17, P18, E8: what each check says, on each of the four
void register_contract_tests() {
  for (const contract::Check& check : contract::checks()) {
    const std::string name(check.name);
    for (const Transport& transport : transports()) {
      ::testing::RegisterTest((transport.name + "Coordinator").c_str(), name.c_str(), nullptr, nullptr,
                              __FILE__, __LINE__, [&]() -> Kept* { return new Kept(transport, check); });
    }
    ::testing::RegisterTest("BrokenCoordinator", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&]() -> Broken* { return new Broken(check); });
  }
}

}  // namespace baton::pipeline
