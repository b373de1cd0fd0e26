// A certificate that signs itself, and its key, for tests with TLS.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton {

struct Certificate {
  explicit Certificate(const std::string& name, const std::string& alternatives = "IP:127.0.0.1") {
    const crash::Ran made = crash::run(
        {.command = {"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                     "-addext", "subjectAltName=" + alternatives, "-keyout", key(), "-out", file()}});
    EXPECT_EQ(made.exit.code, 0) << made.errors;
  }
  std::string file() const { return folder.path() + "/cert.pem"; }
  std::string key() const { return folder.path() + "/key.pem"; }

  TemporaryDirectory folder;
};

}  // namespace baton
