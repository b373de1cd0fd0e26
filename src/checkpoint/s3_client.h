// Says requests to an S3-compatible service and hears the answers, over libcurl. What may be passing (the
// network, a service that is overloaded) is tried again with pauses that grow. Any number of threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "checkpoint/s3_signature.h"

namespace baton::checkpoint {

struct S3Options {
  std::string endpoint = "https://s3.amazonaws.com";  // http://HOST:PORT or https://…
  std::string bucket;
  std::string prefix;  // of all names; without slashes at its ends
  S3Credentials credentials;
  Duration timeout = seconds(60);  // of one request that gets nowhere
  int tries = 10;                  // about 20 s of pauses
  Duration first_pause = milliseconds(100);
  Duration longest_pause = seconds(5);

  // s3://BUCKET/PREFIX, and the rest from AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID,
  // AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
  static Result<S3Options> from_url(const std::string& url);
};

struct S3Answer {
  int status = 0;
  Bytes body;
  std::map<std::string, std::string> headers;  // names in lower case
  bool was_repeated = false;                   // so an earlier try may have succeeded unheard

  std::string_view text() const { return text_of(body); }
};

class S3Client {
 public:
  explicit S3Client(S3Options options);
  ~S3Client();
  S3Client(const S3Client&) = delete;
  S3Client& operator=(const S3Client&) = delete;

  const S3Options& options() const { return options_; }

  struct Asked {
    std::string method;
    std::string key;  // behind the prefix; empty: the bucket itself
    std::map<std::string, std::string> query = {};
    std::map<std::string, std::string> headers = {};
    ByteView body = {};
  };
  // Whatever it answered that is not passing, errors too. UNAVAILABLE: nothing, however often it was tried.
  Result<S3Answer> ask(const Asked& asked);

 private:
  struct Handles;
  Result<S3Answer> ask_once(const Asked& asked);

  const S3Options options_;
  const std::unique_ptr<Handles> handles_;
};

// What such a service says went wrong, as one of our errors.
Error s3_error(const S3Answer& answer, const std::string& what);

// The text of each element of that name, in order. For answers whose elements of interest do not nest.
std::vector<std::string> xml_texts(std::string_view xml, std::string_view name);

}  // namespace baton::checkpoint
