#!/usr/bin/env python3
# E9, C12: the commands, and flat names by export --flat
"""The commands about checkpoints, and the files behind them read and written by code that knows nothing but the
safetensors format.

usage: commands.py BATON
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

BATON = sys.argv[1]


def baton(*words, exit_code=0):
    ran = subprocess.run([BATON, "checkpoint", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == exit_code, (words, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


def limited(*words):
    """What a command says that may have four gibibytes of memory, which are not enough."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    ran = subprocess.run([BATON, "checkpoint", *map(str, words)], capture_output=True, text=True, timeout=120, preexec_fn=limit)
    assert ran.returncode == 1, (words, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def no_duplicates(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def read_safetensors(path):
    whole = path.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length], object_pairs_hook=no_duplicates)
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(text, str) for text in metadata.values()), metadata
    data, tensors, end = whole[8 + length :], {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        assert begin == end, f"a hole before {name}"
        tensors[name], end = (entry["dtype"], entry["shape"], data[begin:stop]), stop
    assert end == len(data), "bytes that belong to no tensor"
    return tensors


def peak_memory(*words):
    """Of the command, in bytes."""
    child = subprocess.Popen([BATON, "checkpoint", *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, words
    return used.ru_maxrss << 10


def expect_little_memory(folder):
    """However large a checkpoint is, it goes through in pieces. (C11)"""
    content = 256 << 20
    header = json.dumps({"large": {"dtype": "F32", "shape": [16, content >> 6], "data_offsets": [0, content]}}).encode()
    with open(folder / "large.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + content)
    store = folder / "large"
    assert peak_memory("import", store, folder / "large.safetensors", "--step", 1) < content // 2
    assert peak_memory("reshard", store, 1, "--ranks", 3) < content // 2
    assert peak_memory("export", store, 1, folder / "large-again.safetensors") < content // 2
    first, second = [json.loads(line)["checkpoint"] for line in baton("ls", store, "--json").splitlines()]
    assert peak_memory("diff", store, first, second) < content // 2


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def with_learning_rate(manifest, rate):
    """As a training program would have told it."""
    fields, _ = manifest.read_bytes().rsplit(b',"crc32c":"', 1)
    text = json.dumps(json.loads(fields + b"}"), separators=(",", ":"))[:-1]
    head, tail = text.split('"learning_rate":', 1)
    text = head + '"learning_rate":' + rate + tail[tail.index(","):]
    manifest.write_text(f'{text},"crc32c":"{crc32c(text.encode()):08x}"}}\n')


def expect_exact_learning_rate(folder):
    store = folder / "rates"
    write_safetensors(folder / "rate.safetensors", {"w": ("U8", [1], b"x")})
    baton("import", store, folder / "rate.safetensors", "--step", 1)
    (manifest,) = (store / "step-0000000001").glob("*.manifest")
    for rate, shown in (("3e-4", 3e-4), ('"nan"', "nan"), ('"-inf"', "-inf")):
        with_learning_rate(manifest, rate)
        assert json.loads(baton("inspect", store, 1, "--json"))["learning_rate"] == shown, rate


def shards(store):
    return sorted(store.rglob("*.safetensors"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        store = folder / "store"
        model = {
            "embed": ("F32", [7, 5], bytes(range(140))),
            "scale": ("F64", [], struct.pack("<d", 0.5)),
            "nothing": ("I8", [0, 3], b""),
            "mask": ("BOOL", [3], b"\1\0\1"),
        }
        write_safetensors(folder / "model.safetensors", model)
        baton("import", store, folder / "model.safetensors", "--step", 7)
        (shard,) = shards(store)
        assert read_safetensors(shard) == model
        assert shard.read_bytes().find(model["scale"][2]) % 4096 == 0  # the widest come first, aligned

        baton("export", store, "latest", folder / "out.safetensors")
        assert read_safetensors(folder / "out.safetensors") == model
        baton("export", store, "latest", folder / "out.safetensors", exit_code=1)  # is not written over

        baton("reshard", store, 7, "--ranks", 3)
        baton("reshard", store, 7, "--ranks", 0, exit_code=1)
        listed = [json.loads(line) for line in baton("ls", store, "--json").splitlines()]
        assert [(one["step"], one["world_size"], one["state"]) for one in listed] == [(7, 1, "committed"), (7, 3, "committed")]
        baton("export", store, "latest", folder / "again.safetensors")
        assert read_safetensors(folder / "again.safetensors") == model
        said = json.loads(baton("diff", store, listed[0]["checkpoint"], listed[1]["checkpoint"], "--json"))
        assert said["same"] == 4 and not said["changed"], said

        changed = dict(model, mask=("BOOL", [3], b"\0\0\1"), new=("U8", [1], b"x"))
        del changed["scale"]
        write_safetensors(folder / "changed.safetensors", changed)
        baton("import", store, folder / "changed.safetensors", "--step", 8)
        said = json.loads(baton("diff", store, 7, 8, "--json", exit_code=1))
        assert (said["only_in_first"], said["only_in_second"], said["changed"]) == (["scale"], ["new"], ["mask"]), said

        baton("diff", store, 7, 9, exit_code=2)
        baton("diff", folder / "none", 7, 8, exit_code=2)

        inspected = json.loads(baton("inspect", store, "8", "--json"))
        assert inspected["step"] == 8 and len(inspected["tensors"]) == 4, inspected
        assert "embed" in baton("inspect", store, 8) and "step" in baton("ls", store)

        baton("export", store, 8, folder / "flat", "--flat")
        names = sorted(path.name for path in (folder / "flat").iterdir())
        assert names == ["step-0000000008.metadata.json", "step-0000000008_shard_0.bin"], names
        assert read_safetensors(folder / "flat" / names[1]) == changed

        baton("verify", store)
        victim = shards(store)[-1]
        bad = bytearray(victim.read_bytes())
        bad[-1] ^= 4
        victim.write_bytes(bad)
        said = baton("verify", store, 8, exit_code=2)
        assert victim.name in said and "damaged" in said, said
        assert json.loads(baton("verify", store, 8, "--json", exit_code=2))["whole"] is False
        baton("verify", store, 7)
        baton("verify", store, 9, exit_code=1)
        (manifest,) = (store / "step-0000000008").glob("*.manifest")
        good = manifest.read_bytes()
        manifest.write_bytes(good[:-10])
        for words in (["inspect", store, 8], ["verify", store, 8], ["export", store, 8, folder / "x"], ["diff", store, 7, 8]):
            said = json.loads(baton(*words, "--json", exit_code=2))
            assert words[0] == "verify" or f"; baton checkpoint verify {store} tells " in said["error"]["message"], said
        for words in (["prune", store], ["gc", store]):
            assert f"remove {manifest}, " in baton(*words, "--json", exit_code=1), words
        manifest.write_bytes(good)
        attempt = manifest.stem
        for name in (8, "step-0000000008", f"step-0000000008/{attempt}"):
            baton("pin", store, 8)
            manifest.write_bytes(good[:-10])
            (row,) = [line for line in baton("ls", store, exit_code=2).splitlines() if "unreadable" in line]
            assert f"step-0000000008/{attempt}" in row and "pinned" in row and manifest.name in row, row
            baton("unpin", store, name)
            assert not (store / "pins").exists(), name
            manifest.write_bytes(good)
        baton("pin", store, 8)
        manifest.unlink()
        baton("unpin", store, 8)
        manifest.write_bytes(good[:-10])
        baton("unpin", store, "step-0000000008", exit_code=2)  # damaged, and not pinned
        baton("unpin", store, "../pins", exit_code=1)
        manifest.write_bytes(good)

        assert json.loads(baton("pin", store, 7, "--json")) == {"checkpoint": "step-0000000007", "pinned": True}
        for step in (10, 11):
            baton("import", store, folder / "model.safetensors", "--step", step)
        assert "would remove" in baton("prune", store, "--keep-last", 1, "--dry-run")
        baton("prune", store, "--keep-last", 1)
        assert {json.loads(line)["step"] for line in baton("ls", store, "--json").splitlines()} == {7, 11}
        baton("unpin", store, 7)
        baton("prune", store, "--keep-last", 1)
        (store / "step-0000000012" / "a0001-00000000000000ef").mkdir(parents=True)
        (store / "step-0000000012" / "a0001-00000000000000ef" / "r00000.safetensors").write_bytes(b"x" * 100)
        said = baton("gc", store)
        assert "removed 0 attempts" in said and "leaves 1 unfinished save: a sign of life within 1h," in said, said
        assert json.loads(baton("gc", store, "--json"))["files"] == []
        assert len(json.loads(baton("gc", store, "--abandoned-after", "0", "--json"))["files"]) == 1
        said = baton("gc", store, "--abandoned-after", "0")
        assert "removed 0 attempts" in said and "leaves 1 aborted attempt: " in said and "remembered for 7d" in said, said

        baton("bench", folder / "bench", "--mebibytes", 4, exit_code=1)  # a misspelt path is no wish for a directory
        (folder / "bench").mkdir()
        said = json.loads(limited("bench", folder / "bench", "--mebibytes", 1 << 20, "--json"))
        assert said["error"]["code"] == "EXHAUSTED", said
        measured = json.loads(baton("bench", folder / "bench", "--mebibytes", 4, "--json"))
        assert measured["save_gb_per_s"] > 0 and measured["load_gb_per_s"] > 0
        assert not list((folder / "bench").iterdir())
        (folder / "bench" / ".bench").touch()  # where it would save, and no checkpoint is looked for
        baton("bench", folder / "bench", "--mebibytes", 4, exit_code=1)
        said = json.loads(baton("verify", folder / "bench", "--json", exit_code=1))
        assert said["error"]["message"] == f"there is no committed checkpoint in {folder}/bench", said

        baton("ls", folder / "none", exit_code=1)
        (folder / "no.safetensors").write_bytes(b"\xff" * 20)
        for name, code in (("no.safetensors", 2), ("none.safetensors", 1)):
            said = json.loads(baton("import", store, folder / name, "--json", exit_code=code))["error"]["message"]
            assert f" {folder / name}:" in f" {said}", said
        baton("frobnicate", exit_code=64)
        expect_exact_learning_rate(folder)
        expect_little_memory(folder)


main()
