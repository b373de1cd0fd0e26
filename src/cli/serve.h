// `baton serve`
#pragma once

#include <string>

#include "cli/settings.h"
#include "server/server.h"

namespace baton::cli {

struct ServeOptions {
  std::string program = "baton";  // as it was called
  std::string listen = "127.0.0.1:7077";
  std::string http = "127.0.0.1:7078";
  wire::TlsFiles tls;
  server::ServerOptions server{.directory = "data"};
};

// All that the server can be told. They refer to `options`.
Settings settings_of(ServeOptions& options);

int run_serve(const ServeOptions& options);

class CommandLine;
void add_serve_command(CommandLine& line);

}  // namespace baton::cli
