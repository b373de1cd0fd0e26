#include "cli/serve.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/table.h"
#include "server/server.h"
#include "wire/host_port.h"

namespace baton::cli {
namespace {

constexpr const char* kAbout =
    R"(The command line has the last word, then the environment, then the file.

Exit codes: 0 stopped as asked, 1 it could not serve and the message says why, 64 a setting makes no sense.

)";

int complain(const Error& error) {
  to_errors("baton: {}: {}\n", word(error.code), error.message);
  return 1;
}

void print_what_to_try(const server::Server& server, const ServeOptions& options) {
  const std::string where = server.address().text();
  const std::string connect = where == ServeOptions().listen ? "" : " --connect " + where;
  to_output("try, from another terminal:\n");
  to_output("  {} submit{} mail hello\n", options.program, connect);
  to_output("  {} work{} mail --drain -- tr a-z A-Z\n", options.program, connect);
  to_output("  {} task list{}\n", options.program, connect);
  to_output("  curl -s http://{}/v1/queues\n", server.http_address()->text());
}

// On the command line a setting is --connections-max, in the environment BATON_CONNECTIONS_MAX.
std::string as_option(std::string name) {
  std::ranges::replace(name, '_', '-');
  return "--" + name;
}
std::string as_variable(const std::string& name) {
  std::string variable = "BATON_";
  for (const char letter : name)
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return variable;
}

// Secrets that systemd hands over (LoadCredential=), where nothing else was said.
void use_credentials(ServeOptions& options) {
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr) return;
  const auto use = [&](std::string& setting, const char* name) {
    const std::string path = fmt::format("{}/{}", folder, name);
    if (setting.empty() && ::access(path.c_str(), F_OK) == 0) setting = path;
  };
  use(options.server.tokens, "baton.tokens");
  use(options.tls.certificate, "baton.tls-certificate");
  use(options.tls.key, "baton.tls-key");
  use(options.tls.ca, "baton.tls-client-ca");
}

// What was given, before it is known to make sense.
struct Given {
  std::string config;
  std::map<std::string, std::optional<std::string>>
      settings;  // by name, from the environment or the command line
};

Status read(const Settings& settings, const Given& given, const CommandLine& line) {
  if (!given.config.empty()) {
    std::ifstream file(given.config);
    std::ostringstream text;
    if (!file || !(text << file.rdbuf()))
      return failure(Errc::not_found, fmt::format("{} cannot be read, or is empty", given.config));
    if (auto set = read_settings(settings, text.str(), given.config); !set) return set;
  }
  for (const auto& [name, value] : given.settings) {
    if (!value) continue;
    if (auto set = settings.find(name)->set(*value); !set)
      return failure(Errc::invalid_request,
                     fmt::format("{}: {}", line.has(as_option(name)) ? as_option(name) : as_variable(name),
                                 set.error().message));
  }
  return {};
}

// A name in the environment that is none, but nearly. Others there begin as ours do: those of other commands,
// and what Kubernetes says of a service that is called baton.
void warn_of_misspelt(const Settings& settings, const CommandLine& line) {
  constexpr std::string_view kOurs = "BATON_";
  constexpr std::string_view kToken = "BATON_TOKEN";  // of clients, and no option's
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view whole = *entry;
    const std::string variable(whole.substr(0, whole.find('=')));
    if (!variable.starts_with(kOurs) || line.knows_variable(variable) || variable == kToken) continue;
    std::string name = variable.substr(kOurs.size());
    std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
    if (const Setting* meant = settings.nearest(name))
      to_errors("baton: there is no setting {}; is it {}?\n", printable(variable, 40),
                as_variable(meant->name));
  }
}

// A number, for who listens asks nobody what a name stands for; but this one is the same everywhere.
Result<server::Address> listens_at(const std::string& name, const std::string& text) {
  auto at = wire::parse_host_port(text);
  if (!at) return failure(Errc::invalid_request, name + ": " + at.error().message);
  if (at->host == "localhost") at->host = "127.0.0.1";
  in6_addr number{};  // has room for both kinds
  if (::inet_pton(AF_INET, at->host.c_str(), &number) != 1 &&
      ::inet_pton(AF_INET6, at->host.c_str(), &number) != 1)
    return failure(Errc::invalid_request,
                   fmt::format("{}: '{}' is not an address; give a number such as 127.0.0.1, or localhost",
                               name, at->host));
  return server::Address{std::move(at->host), at->port};
}

}  // namespace

int run_serve(const ServeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // whoever reads no further what is said here has not asked for the end
  auto address = listens_at("listen", options.listen);
  auto http = listens_at("http", options.http);
  if (!address || !http) {
    to_errors("baton: {}\n", (address ? http : address).error().message);
    return kExitUsage;
  }
  server::ServerOptions serve = options.server;
  serve.listen = std::move(*address);
  serve.http = std::move(*http);
  serve.supervision = server::supervision_of_environment();
  if (!options.tls.certificate.empty() || !options.tls.key.empty() || !options.tls.ca.empty())
    serve.tls = options.tls;
  auto opened = server::Server::open(std::move(serve));
  if (!opened) return complain(opened.error());
  server::Server& server = **opened;
  const RecoverySummary& recovery = server.recovery();
  to_output("baton {} serves RESP on {} and HTTP on {}\n", BATON_VERSION, server.address().text(),
            server.http_address()->text());
  to_output("data in {}; recovered in {} ms ({} entries replayed)\n", options.server.directory,
            recovery.took.ms, recovery.replayed);
  if (options.server.tokens.empty() && options.tls.certificate.empty()) print_what_to_try(server, options);
  std::fflush(stdout);
  if (auto done = server.run(); !done) return complain(done.error());
  to_output("stopped, everything is on disk\n");
  return 0;
}

void add_serve_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<ServeOptions>();
  auto settings = std::make_shared<Settings>(settings_of(*options));
  auto given = std::make_shared<Given>();
  options->program = line.program();
  Command serve = line.command("serve", "Serves clients and workers");
  for (const Setting& setting : settings->all()) {
    serve
        .option(as_option(setting.name) + " " + setting.value_name, given->settings[setting.name],
                setting.about, setting.otherwise)
        .environment(as_variable(setting.name));
  }
  serve
      .option("--config FILE", given->config,
              "Settings in TOML, with the names of the options: tls_key = \"key.pem\"")
      .environment("BATON_CONFIG")
      .footer(kAbout + ("Example: " + line.program()) + " serve --data data --listen 127.0.0.1:7077")
      .run([options, settings, given, &line] {
        if (auto done = read(*settings, *given, line); !done) {
          to_errors("baton: {}\n", done.error().message);
          return kExitUsage;
        }
        warn_of_misspelt(*settings, line);
        use_credentials(*options);
        return run_serve(*options);
      });
}

}  // namespace baton::cli
