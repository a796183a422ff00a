// Feeds random, valid and damaged bytes to every decoder; runs anywhere, without libFuzzer.
//
//   fuzz_decode [--runs N] [--seed S]     N inputs (default: $WEIR_FUZZ_RUNS, else 30000), S names the series
//   fuzz_decode FILE...                   these inputs, such as a crash that libFuzzer wrote down
//
// A crash is repeated by the seed and the number of the run, which are printed when it ends badly.
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "decode.h"

using namespace weir;

// A decoder that believes a length in its input would ask for more than this. Aborting lets us name the run.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizers ask for these names
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=256:allocator_may_return_null=0:abort_on_error=1";
}
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

std::uint64_t current_seed = 0;
std::uint64_t current_run = 0;

void report(int) {
  char line[96];
  const int length =
      std::snprintf(line, sizeof line, "fuzz_decode: seed %llu, run %llu\n",
                    static_cast<unsigned long long>(current_seed), static_cast<unsigned long long>(current_run));
  std::fwrite(line, 1, static_cast<std::size_t>(length), stderr);
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

/// Damages an input as networks, disks and attackers do.
void mutate(ByteBuffer& input, std::mt19937_64& random) {
  static constexpr std::uint8_t kExtremes[] = {0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff};
  for (std::uint64_t n = 1 + random() % 4; n > 0 && input.size() > 2; --n) {
    const std::size_t at = 1 + random() % (input.size() - 1);
    const auto here = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 6) {
      case 0: input[at] ^= static_cast<std::byte>(1u << (random() % 8)); break;
      case 1: input[at] = static_cast<std::byte>(kExtremes[random() % std::size(kExtremes)]); break;
      case 2: input[at] = static_cast<std::byte>(random()); break;
      case 3: input.resize(at); break;
      case 4: input.insert(here, random() % 8, static_cast<std::byte>(random())); break;
      default:
        for (std::size_t i = at; i < std::min(at + 4, input.size()); ++i) input[i] = std::byte{0xff};
        break;
    }
  }
}

int replay(int count, char** files) {
  for (int i = 0; i < count; ++i) {
    std::ifstream in(files[i], std::ios::binary);
    if (!in) return fmt::print(stderr, "fuzz_decode: cannot read {}\n", files[i]), 2;
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    fuzz::decode_anything(as_bytes(bytes));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* from_environment = std::getenv("WEIR_FUZZ_RUNS");
  std::uint64_t runs = from_environment ? std::strtoull(from_environment, nullptr, 10) : 30'000;
  current_seed = 1;
  int first = 1;
  for (; first + 1 < argc && std::strncmp(argv[first], "--", 2) == 0; first += 2) {
    const std::string option = argv[first];
    const std::uint64_t value = std::strtoull(argv[first + 1], nullptr, 10);
    if (option == "--runs") {
      runs = value;
    } else if (option == "--seed") {
      current_seed = value;
    } else {
      return fmt::print(stderr, "fuzz_decode: unknown option {}, only --runs N and --seed S\n", option), 2;
    }
  }
  if (first < argc) return replay(argc - first, argv + first);

  std::signal(SIGABRT, report);
  for (current_run = 0; current_run < runs; ++current_run) {
    std::mt19937_64 random(current_seed * 0x9e3779b97f4a7c15u + current_run);
    ByteBuffer input;
    if (random() % 6 == 0) {
      input.resize(random() % 200);
      for (std::byte& b : input) b = static_cast<std::byte>(random());
    } else {
      input = fuzz::valid_input(random());
      if (random() % 10 != 0) mutate(input, random);
    }
    fuzz::decode_anything(input);
  }
  fmt::print("{} inputs decoded, seed {}\n", runs, current_seed);
  return 0;
}
