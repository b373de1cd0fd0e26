// A whole turn of an instance as statements of one transaction.
#pragma once

#include <cstddef>
#include <vector>

#include "postgres/connection.h"
#include "stream/work_batch.h"

namespace baton::postgres {

// The lists of a batch in the order in which they take effect; a list without items is not sent.
class BatchCalls {
 public:
  explicit BatchCalls(const stream::WorkBatchRequest& request);

  const std::vector<Call>& calls() const { return calls_; }
  stream::WorkBatch batch_of(const std::vector<Rows>& rows) const;

 private:
  struct Answer {
    std::vector<stream::Verdict> stream::WorkBatch::* where;
    std::size_t items;
  };
  std::vector<Call> calls_;
  std::vector<Answer> answers_;
  std::size_t first_answer_ = 0;  // calls that come before those with a verdict on each item
  bool claims_ = false;           // by the last two
};

}  // namespace baton::postgres
