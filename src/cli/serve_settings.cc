#include "cli/serve.h"

namespace baton::cli {

Settings settings_of(ServeOptions& options) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  server::ServerOptions& server = options.server;
  server::ServerLimits& limits = server.limits;
  core::Rules& rules = server.coordinator.engine.rules;
  Settings all;
  all.text("data DIR", server.directory, "Data directory, made if need be");
  all.text("listen HOST:PORT", options.listen, "Where to listen for the Redis protocol");
  all.text("http HOST:PORT", options.http, "Where to listen for HTTP");
  all.text("tokens FILE", server.tokens, "File of names, tokens and what each may do; see `baton token`");
  all.text("tls_certificate FILE", options.tls.certificate,
           "Certificate chain, PEM; clients then have to use TLS");
  all.text("tls_key FILE", options.tls.key, "Its key, PEM");
  all.text("tls_client_ca FILE", options.tls.ca, "Clients have to show a certificate signed by one of these");
  all.text("audit FILE", server.audit, "File of administrative actions, appended to");
  all.number("connections_max N", limits.connections_max, "Connections at a time", 1, 1'000'000);
  all.number("connections_per_address_max N", limits.connections_per_address_max, "Of them from one address",
             1, 1'000'000);
  all.number("connections_per_principal_max N", limits.connections_per_principal_max,
             "Of them of one principal, over the Redis protocol", 1, 1'000'000);
  all.number("under_way_max N", limits.under_way_max, "Commands of one connection begun and not yet answered",
             1, 1'000'000);
  all.size("output_bytes_max SIZE", limits.output_bytes_max,
           "Replies that one connection has not read, before no more commands are taken from it", 1,
           kMiB << 10);
  all.size("half_bytes_max SIZE", limits.half_bytes_max,
           "Commands that have come in part, of all connections", 64 * kMiB, kMiB << 20);
  all.size("unsent_bytes_max SIZE", limits.unsent_bytes_max,
           "Replies that all connections together have not read, before each is served only as it reads", 1,
           kMiB << 20);
  all.time("stuck_max TIME", limits.stuck_max,
           "A command half sent or a reply half read for this long ends the connection", milliseconds(100),
           hours(1));
  all.size("blob_bytes_max SIZE", limits.blobs.bytes_max, "Of an artifact or large result of a pipeline", 1,
           kMiB << 20);
  all.number("blob_transfers_max N", limits.blobs.transfers_max, "Of them on their way at a time", 1, 10'000);
  all.size("payload_bytes_max SIZE", rules.payload_bytes_max, "Of a payload or result", 1, 1'000'000);
  all.number("tasks_max N", rules.tasks_max, "Tasks of any state", 1, 1'000'000'000);
  all.number("namespace_tasks_max N", rules.each_namespace.tasks_max,
             "Of them in one namespace; 0: any number", 0, 1'000'000'000);
  all.number("namespace_queues_max N", rules.each_namespace.queues_max,
             "Queues in one namespace; 0: any number", 0, 1'000'000'000);
  all.size("namespace_payload_bytes_max SIZE", rules.each_namespace.payload_bytes_max,
           "Payloads of all tasks in one namespace; 0: any number of bytes", 0, kMiB << 20);
  all.size("namespace_bytes_per_second_max SIZE", limits.namespace_bytes_per_second_max,
           "That one namespace writes; 0: as many as it likes", 0, kMiB << 20);
  all.size("namespace_bytes_burst SIZE", limits.namespace_bytes_burst, "That it may write at once", 1,
           kMiB << 20);
  all.size("memory_bytes_max SIZE", limits.memory_bytes_max,
           "Of the server; beyond it tasks are refused that need more. 0: as much as there is", 0,
           kMiB << 20);
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
