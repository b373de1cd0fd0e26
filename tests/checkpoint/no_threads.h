// A process for which the system has no more threads.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace baton::checkpoint {

// While there is one, no thread can be made: there is no memory for such a stack.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none = before_;
    EXPECT_EQ(pthread_attr_setstacksize(&none, std::size_t{1} << 60), 0);
    EXPECT_EQ(pthread_setattr_default_np(&none), 0);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace baton::checkpoint
