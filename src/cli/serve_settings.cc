#include "cli/serve.h"

namespace baton::cli {

Settings settings_of(ServeOptions& options) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  server::ServerOptions& server = options.server;
  core::Rules& rules = server.coordinator.engine.rules;
  Settings all;
  all.text("data DIR", server.directory, "Data directory, made if need be");
  all.text("listen HOST:PORT", options.listen, "Where to listen for the Redis protocol");
  all.text("http HOST:PORT", options.http, "Where to listen for HTTP");
  all.text("tokens FILE", server.tokens, "File of names, tokens and what each may do; see `baton token`");
  all.text("tls_certificate FILE", options.tls.certificate,
           "Certificate chain, PEM; clients then have to use TLS");
  all.text("tls_key FILE", options.tls.key, "Its key, PEM");
  all.text("tls_client_ca FILE", options.tls.client_ca,
           "Clients have to show a certificate signed by one of these");
  all.number("connections_max N", server.limits.connections_max, "Connections at a time", 1, 1'000'000);
  all.time("stuck_max TIME", server.limits.stuck_max,
           "A command half sent or a reply half read for this long ends the connection", milliseconds(100),
           hours(1));
  all.size("payload_bytes_max SIZE", rules.payload_bytes_max, "Of a payload or result", 1, 1'000'000);
  all.number("tasks_max N", rules.tasks_max, "Tasks of any state", 1, 1'000'000'000);
  all.time("retention_age TIME", rules.retention_age, "Finished tasks are forgotten when older than this",
           milliseconds(1), days(3650));
  all.number("retention_count N", rules.retention_count, "Finished tasks that a queue keeps at most", 0,
             1'000'000'000);
  all.size("cache_bytes SIZE", server.coordinator.engine.cache_bytes, "Payloads that are kept in memory", 0,
           kMiB << 20);
  all.size("segment_bytes SIZE", server.coordinator.log.segment_bytes,
           "Of a file of the log, a multiple of 4 KiB", 4 * kMiB, 1024 * kMiB);
  all.size("snapshot_every_bytes SIZE", server.coordinator.housekeeping.snapshot_every_bytes,
           "A snapshot is made after so much log", kMiB, kMiB << 20);
  return all;
}

}  // namespace baton::cli
