#include "cli/checkpoint_commands.h"

#include <memory>

#include "checkpoint/open_storage.h"
#include "cli/checkpoint_actions.h"
#include "cli/command_line.h"

namespace baton::cli {
namespace {

using checkpoint::Opening;
using Action = int (*)(checkpoint::Storage& storage, const CheckpointOptions& options);

int with_storage(const CheckpointOptions& options, Opening opening, Action action) {
  const auto storage = checkpoint::open_storage(options.directory, opening);
  if (!storage) return complain(storage.error(), options);
  return action(**storage, options);
}

struct Added {
  Command command;
  CheckpointOptions& options;
};

Added add(CommandLine& line, const std::string& name, const char* description, Action action,
          Opening opening = Opening::existing) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<CheckpointOptions>();
  Command command = line.command("checkpoint " + name, description);
  command.argument("directory", options->directory,
                   "Where the checkpoints are: a directory, or s3://BUCKET/PREFIX");
  command.flag("--json", options->json, "Output for programs");
  command.run([options, opening, action] { return with_storage(*options, opening, action); });
  return {command, *options};
}

constexpr const char* kCheckpoint =
    "Its name, with an attempt behind a slash or without; its step; or latest";

void add_looking(CommandLine& line) {
  const std::string program = line.program();
  add(line, "ls", "Lists checkpoints, and attempts that came to nothing", list_checkpoints)
      .command.footer("Exit codes: 0, or 2 if what was decided about one cannot be read.\n\nExample: " +
                      program + " checkpoint ls checkpoints");

  auto looked = add(line, "inspect", "Shows what is in a checkpoint", inspect_checkpoint);
  looked.command.argument("checkpoint", looked.options.name, kCheckpoint);
  looked.command.footer("Example: " + program + " checkpoint inspect checkpoints latest");

  auto verified = add(line, "verify", "Checks every byte of a checkpoint, or of all", verify_checkpoints);
  verified.command.optional_argument("checkpoint", verified.options.maybe_name, kCheckpoint);
  verified.command.footer("Exit codes: 0 whole, 1 there is none, 2 damaged.\n\nExample: " + program +
                          " checkpoint verify checkpoints 1000");

  auto differing = add(line, "diff", "Tells what differs between two checkpoints", diff_checkpoints);
  differing.command.argument("first", differing.options.name, kCheckpoint);
  differing.command.argument("second", differing.options.other, kCheckpoint);
  differing.options.exit_if_refused = 2;  // 1 says that they differ
  differing.command.footer(
      "Exit codes: 0 the same tensors and values, 1 others, 2 nobody can tell.\n\nExample: " + program +
      " checkpoint diff checkpoints 1000 2000");

  auto measured = add(line, "bench", "Measures a save and a load in this directory", bench_checkpoints);
  measured.command.number("--mebibytes N", measured.options.mebibytes, "How much to save", 1, 1 << 20);
  measured.command.footer("Example: " + program + " checkpoint bench checkpoints");
}

void add_converting(CommandLine& line) {
  const std::string program = line.program();
  auto exported = add(line, "export", "Writes a checkpoint as one safetensors file", export_checkpoint);
  exported.command.argument("checkpoint", exported.options.name, kCheckpoint);
  exported.command.argument("target", exported.options.other,
                            "File to write, which is not there yet; with --flat a directory");
  exported.command.flag("--flat", exported.options.flat,
                        "The shards as NAME_shard_0.bin and so on, and the manifest as NAME.metadata.json");
  exported.command.footer("Example: " + program + " checkpoint export checkpoints latest model.safetensors");

  auto imported =
      add(line, "import", "Makes a checkpoint from safetensors files", import_checkpoint, Opening::made);
  imported.command.arguments("file", imported.options.files, "Files with whole tensors");
  imported.command.number("--step N", imported.options.step, "The step that it is of");
  imported.command.flag("--sha256", imported.options.sha256,
                        "A SHA-256 of each tensor, verified by each load");
  imported.command.footer("Example: " + program +
                          " checkpoint import checkpoints model.safetensors --step 1000");

  auto cut =
      add(line, "reshard", "Writes a checkpoint again, as another number of ranks would", reshard_checkpoint);
  cut.command.argument("checkpoint", cut.options.name, kCheckpoint);
  cut.command.number("--ranks N", cut.options.ranks, "How many", 4096);
  cut.command.footer(
      "It can be loaded by any number of ranks without this; each then reads parts of more "
      "files.\n\nExample: " +
      program + " checkpoint reshard checkpoints latest --ranks 4");
}

void add_removing(CommandLine& line) {
  const std::string program = line.program();
  auto pruned = add(line, "prune", "Removes old checkpoints", prune_checkpoints);
  pruned.command.number("--keep-last N", pruned.options.policy.keep_last,
                        "The newest ones are kept; one always is");
  pruned.command.number("--keep-every K", pruned.options.policy.keep_every,
                        "Steps that are multiples of this are kept too");
  pruned.command.flag("--dry-run", pruned.options.dry_run, "Just says what would be removed");
  pruned.command.footer(
      "One of which a file is missing, or of another size, does not count. The bytes are not read: `verify`\n"
      "before it finds what is damaged and would be kept.\n\nExample: " +
      program + " checkpoint prune checkpoints --keep-last 3 --dry-run");

  auto collected =
      add(line, "gc", "Removes what saves that came to nothing left behind", collect_checkpoint_garbage);
  collected.command.duration("--abandoned-after TIME", collected.options.abandoned_after,
                             "A save without a sign of life for this long is given up");
  collected.command.flag("--dry-run", collected.options.dry_run, "Just says what would be removed");
  collected.command.footer("Example: " + program + " checkpoint gc checkpoints");

  auto pinned = add(line, "pin", "Keeps a checkpoint from being pruned", pin_checkpoint);
  pinned.command.argument("checkpoint", pinned.options.name, kCheckpoint);
  pinned.command.footer("Example: " + program + " checkpoint pin checkpoints 1000");
  auto unpinned = add(line, "unpin", "Lets it be pruned again", unpin_checkpoint);
  unpinned.command.argument("checkpoint", unpinned.options.name, kCheckpoint);
  unpinned.command.footer("Example: " + program + " checkpoint unpin checkpoints 1000");
}

}  // namespace

void add_checkpoint_commands(CommandLine& line) {
  line.group("checkpoint", "Looks at, checks, converts and cleans up checkpoints");
  add_looking(line);
  add_converting(line);
  add_removing(line);
}

}  // namespace baton::cli
