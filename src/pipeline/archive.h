// Several files as one stream of bytes: a tar file (POSIX.1-2001), so that `tar` can read it too. What is the
// same files is the same bytes: owners and times are left out, and names are in the order they are given in.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/blob_store.h"

namespace baton::pipeline {

// The files lie below `directory`, and stay as they are meanwhile.
ByteSource archive_of(std::string directory, std::vector<std::string> files);

// Puts what is in the archive below `directory`, each file as a whole. INVALID_REQUEST: something in it would
// end up elsewhere; CORRUPT: it is not such an archive; CLOSED: it was stopped.
Status unpack_archive(const std::string& archive, const std::string& directory,
                      const std::stop_token& stop = {});

}  // namespace baton::pipeline
