// The same for clang's libFuzzer, which finds its way by coverage:  fuzz_decode_libfuzzer CORPUS_DIRECTORY
#include "decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weir::fuzz::decode_anything(std::as_bytes(std::span(data, size)));
  return 0;
}
