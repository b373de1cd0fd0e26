// `baton serve`
#pragma once

#include <string>

namespace baton::cli {

struct ServeOptions {
  std::string directory = "data";
  std::string listen = "127.0.0.1:7077";
  std::string http = "127.0.0.1:7078";
};

int run_serve(const ServeOptions& options);

}  // namespace baton::cli
