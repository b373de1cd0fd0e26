#include <gtest/gtest.h>

namespace baton::pipeline {
void register_contract_tests();
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  baton::pipeline::register_contract_tests();
  return RUN_ALL_TESTS();
}
