// A fuzz target without libFuzzer, for the ordinary tests: every seed as it is, then seeds changed at random,
// always in the same way. Usage: fuzz_NAME EXECUTIONS [CORPUS]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void execute(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::vector<std::string> read_seeds(const char* directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

class Changes {
 public:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

  void apply(std::string& input, const std::string& other) {
    const std::size_t at = below(input.size() + 1);
    switch (below(5)) {
      case 0: input.insert(at, 1, static_cast<char>(random_())); break;
      case 1: input.erase(at, 1 + below(8)); break;
      case 2: input.insert(at, other.substr(below(other.size() + 1), 1 + below(32))); break;
      case 3: input.resize(at); break;
      default:
        if (!input.empty()) input[below(input.size())] ^= static_cast<char>(1 << below(8));
    }
  }

 private:
  std::mt19937_64 random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> seeds = argc > 2 ? read_seeds(argv[2]) : std::vector<std::string>{};
  if (seeds.empty()) seeds.emplace_back();
  for (const std::string& seed : seeds) execute(seed);
  Changes changes;
  const long executions = std::atol(argv[1]);
  for (long count = 0; count < executions; ++count) {
    std::string input = seeds[changes.below(seeds.size())];
    for (std::size_t left = 1 + changes.below(4); left > 0; --left)
      changes.apply(input, seeds[changes.below(seeds.size())]);
    execute(input);
  }
  std::printf("%zu seeds, %ld changed ones\n", seeds.size(), executions);
}
