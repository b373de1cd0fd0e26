// `baton serve`
#pragma once

#include <string>

#include "server/tls.h"

namespace baton::cli {

struct ServeOptions {
  std::string directory = "data";
  std::string listen = "127.0.0.1:7077";
  std::string http = "127.0.0.1:7078";
  std::string tokens;
  server::TlsFiles tls;
};

int run_serve(const ServeOptions& options);

class CommandLine;
void add_serve_command(CommandLine& line);

}  // namespace baton::cli
