// How a command finds its coordinator, and who it says it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/complaint.h"
#include "client/client.h"

namespace baton::cli {

struct Connection {
  std::vector<std::string> addresses = {"127.0.0.1:7077"};  // tried in turn
  std::string user;
  std::string token_file;  // empty: $BATON_TOKEN, if there is one
  std::string ns = "default";
  Duration timeout = seconds(30);  // of one request
  bool tls = false;
  client::TlsOptions tls_files;  // any of them means TLS
};

inline constexpr const char* kConnectionHeading = "Connection";  // of their options in the help

class Command;
void add_connection_options(Command& command, Connection& connection);

// Whether a command tells of connections that break and are made again. That an address does not let us in
// is told always, if there is another one to try.
enum class Breaks : bool { untold, told };

// A client, after somebody was seen to listen there: a wrong address is told at once, and not when the
// client has given up trying.
Result<std::unique_ptr<client::Client>> connect(const Connection& connection, Breaks breaks = Breaks::untold);
// The same for whoever makes the client himself.
Result<client::ClientOptions> client_options(const Connection& connection, Breaks breaks = Breaks::untold);

// What to exit with, after a complaint, if there is no client.
int complain_of_connection(const Error& error, Format format);

// Runs something with a client, or complains that there is none. Returns the exit code.
int with_client(const Connection& connection, Format format, const std::function<int(client::Client&)>& run,
                Breaks breaks = Breaks::untold);

}  // namespace baton::cli
