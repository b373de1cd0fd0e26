// The examples that the documentation of the signature gives.
#include "checkpoint/s3_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::checkpoint {
namespace {

using ::testing::EndsWith;

constexpr std::string_view kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string authorization(S3Request request, std::string_view body_sha256 = kEmpty) {
  request.host = "examplebucket.s3.amazonaws.com";
  sign(request, body_sha256, "20130524T000000Z",
       {.access_key = "AKIAIOSFODNN7EXAMPLE",
        .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        .session_token = {}});
  return request.headers["authorization"];
}

// C11
TEST(AnS3Signature, IsThatOfTheExamples) {
  EXPECT_THAT(
      authorization({.method = "GET", .host = {}, .path = "/test.txt", .headers = {{"range", "bytes=0-9"}}}),
      EndsWith("SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
               "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
  EXPECT_THAT(authorization({.method = "PUT",
                             .host = {},
                             .path = "/test$file.text",
                             .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}},
                            "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
              EndsWith("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
  EXPECT_THAT(authorization({.method = "GET", .host = {}, .path = "/", .query = {{"lifecycle", ""}}}),
              EndsWith("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_THAT(authorization(
                  {.method = "GET", .host = {}, .path = "/", .query = {{"max-keys", "2"}, {"prefix", "J"}}}),
              EndsWith("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(AnS3Signature, EscapesAllButAFew) {
  EXPECT_EQ(escaped("a/b c+d~é", true), "a/b%20c%2Bd~%C3%A9");
  EXPECT_EQ(escaped("a/b", false), "a%2Fb");
}

}  // namespace
}  // namespace baton::checkpoint
