// Requests to an S3-compatible service, signed as version 4 of its signatures wants it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace baton::checkpoint {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // of credentials that end some day
  std::string region = "us-east-1";
};

struct S3Request {
  std::string method;
  std::string host;  // with its port, if it is not the usual one
  std::string path;  // "/bucket/key", not escaped
  std::map<std::string, std::string> query = {};
  std::map<std::string, std::string> headers = {};  // in lower case
};

// Escaped as the signature wants it: all but letters, digits and "-._~"; '/' in paths stays.
std::string escaped(std::string_view text, bool keep_slashes);
std::string query_text(const std::map<std::string, std::string>& query);

// Adds host, date, hash of the body and authorization to the headers. `time` is like 20130524T000000Z.
void sign(S3Request& request, std::string_view body_sha256, const std::string& time,
          const S3Credentials& credentials);

}  // namespace baton::checkpoint
