// Fixtures of tests: text files with one case a line, words of text first, then bytes in hex.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace weir::wire {

/// The words of every line that is not empty and not a comment. An empty list means that the file cannot be read.
inline std::vector<std::vector<std::string>> golden_lines(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    lines.emplace_back();
    for (std::string word; words >> word;) lines.back().push_back(word);
  }
  return lines;
}

inline ByteBuffer from_hex(const std::string& hex) {
  ByteBuffer bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

}  // namespace weir::wire
