// How an attempt to save ends: by one small file, the manifest, that is there or not. Committing and giving
// up race for the same name, and whoever creates it first decides, for everybody and for good. So a writer
// that was thought dead and wakes up cannot commit what was given up, nor the other way round.
//
//   attempt's files durable ──► manifest aside, fsync ──► link under its name ──► fsync of the directory
//                                                           │
//                                           taken already: read what was decided
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

class AtomicCommitProtocol {
 public:
  explicit AtomicCommitProtocol(Storage& storage) : storage_(storage) {}

  // What was decided, whoever did it. Everything that the metadata names is durable already.
  Result<Verdict> commit(const CheckpointMetadata& metadata);
  // After this came to `abort`, those files of the attempt can be removed that no checkpoint refers to.
  Result<Verdict> abort(const CheckpointId& id, std::string_view why);
  // For whoever cannot finish it: aborts, and returns why; fine if it was committed after all. If the storage
  // does not let it, what was decided is not known. Of all who do this the one who decides removes what was
  // written, unless somebody refers to it; a rank that wrote something later removes that.
  Status give_up(const CheckpointId& id, const Error& why, std::optional<Rank> by = {});

 private:
  struct Decision {
    Verdict verdict = Verdict::abort;
    bool is_ours = false;
  };
  Result<Decision> decide(const CheckpointId& id, Verdict wanted, std::string_view manifest);

  Storage& storage_;
};

}  // namespace baton::checkpoint
