#!/usr/bin/env python3
"""Builds a program of one's own against the source tree, the way README.md says, and runs it.

usage: embedding.py SOURCE FOLDER [CMAKE ARGUMENT...]     FOLDER is made anew, and removed if all went well
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path


def fail(what):
    sys.exit(f"embedding: {what}")


def run(*command):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        fail(f"exit {done.returncode} of {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


source, folder = Path(sys.argv[1]), Path(sys.argv[2])
build = folder  # as deep in the tree as any other build folder, so that ccache knows the files
shutil.rmtree(folder, ignore_errors=True)
program = folder / "mine"
program.mkdir(parents=True)

blocks = re.findall(r"^```cmake\n(.*?)^```", (source / "README.md").read_text(), re.M | re.S)
if len(blocks) != 1 or "/path/to/baton" not in blocks[0]:
    fail("README.md should have one block of CMake, with /path/to/baton in it")
(program / "CMakeLists.txt").write_text(blocks[0].replace("/path/to/baton", str(source)))
shutil.copy(source / "examples" / "embedded.cc", program / "main.cc")
# Another one, for streams on PostgreSQL, in a folder of its own.
shop = program / "shop"
shop.mkdir()
(shop / "CMakeLists.txt").write_text("add_executable(shop orders.cc)\ntarget_link_libraries(shop PRIVATE baton::postgres)\n")
shutil.copy(source / "examples" / "orders" / "orders.cc", shop)
# And the other faces.
faces = program / "faces"
faces.mkdir()
(faces / "CMakeLists.txt").write_text(
    "add_executable(release release.cc)\ntarget_link_libraries(release PRIVATE baton::pipeline)\n"
    "add_executable(training training.cc)\ntarget_link_libraries(training PRIVATE baton::checkpoint)\n")
for example in ("release.cc", "training.cc"):
    shutil.copy(source / "examples" / example, faces)
with (program / "CMakeLists.txt").open("a") as file:
    file.write("add_subdirectory(shop)\nadd_subdirectory(faces)\n")

run("cmake", "-S", program, "-B", build, *sys.argv[3:])
run("cmake", "--build", build)
said = run(build / "mine_app", folder / "data")
if "working on: hello alice" not in said:
    fail(f"the program said: {said}")

if "example_orders open URL" not in run(build / "shop" / "shop", "--help"):
    fail("the shop does not say how it is used")

if "1.4 works on linux" not in run(build / "faces" / "release"):
    fail("the pipeline did not run")
if "trained up to step 20" not in run(build / "faces" / "training", folder / "checkpoints", 2, 20):
    fail("the training did not run")

# It is somebody else's build: nothing of ours lies at its top, and it needs nothing that only our tests need.
strewn = [path.name for path in build.iterdir() if re.match(r"libbaton|baton$", path.name) and path.is_file()]
if strewn:
    fail(f"{strewn} in the user's build folder")
needless = re.findall(r"^(GTest_DIR|CLI11_DIR)", (build / "CMakeCache.txt").read_text(), re.M)
if needless:
    fail(f"looked for {needless}")
shutil.rmtree(folder)
