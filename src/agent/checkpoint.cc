#include "agent/checkpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace weir::agent {

namespace {
constexpr Bytes kLargest = kGiB;  // millions of files

template <typename T>
T number(const nlohmann::json& object, const char* name) {
  const std::string text = object.at(name);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error(fmt::format("{} is not a number", name));
  return value;
}
}  // namespace

std::string to_json(const std::vector<FileMark>& marks) {
  auto list = nlohmann::json::array();
  for (const FileMark& mark : marks) {
    list.push_back({{"path", mark.path},
                    {"source", mark.source},
                    {"device", std::to_string(mark.device)},
                    {"inode", std::to_string(mark.inode)},
                    {"birth", std::to_string(mark.birth)},
                    {"position", std::to_string(mark.position)},
                    {"head_length", mark.head_length},
                    {"head_hash", std::to_string(mark.head_hash)}});
  }
  // A path may hold any byte.
  return nlohmann::json{{"version", 1}, {"files", std::move(list)}}.dump(1, ' ', false,
                                                                         nlohmann::json::error_handler_t::replace) +
         "\n";
}

Result<std::vector<FileMark>> parse_checkpoint(std::string_view json) {
  try {
    const auto document = nlohmann::json::parse(json);
    if (document.at("version") != 1) return fail(ErrorKind::kUnsupported, "its version is not 1");
    std::vector<FileMark> marks;
    for (const auto& file : document.at("files")) {
      if (!file.at("head_length").is_number_unsigned()) return fail(ErrorKind::kInvalid, "head_length is not a number");
      FileMark mark{.path = file.at("path"),
                    .source = file.at("source"),
                    .device = number<std::uint64_t>(file, "device"),
                    .inode = number<std::uint64_t>(file, "inode"),
                    .birth = number<std::int64_t>(file, "birth"),
                    .position = number<std::uint64_t>(file, "position"),
                    .head_length = file.at("head_length"),
                    .head_hash = number<std::uint64_t>(file, "head_hash")};
      if (mark.head_length > kHeadBytes) return fail(ErrorKind::kInvalid, "head_length is above 1024");
      marks.push_back(std::move(mark));
    }
    return marks;
  } catch (const std::exception& error) {
    return fail(ErrorKind::kInvalid, error.what());
  }
}

Result<std::vector<FileMark>> load_checkpoint(runtime::FileSystem& files, const runtime::Path& path) {
  auto bytes = files.read_all(path, kLargest);
  if (!bytes) {
    if (bytes.error().kind == ErrorKind::kNotFound) return std::vector<FileMark>{};
    if (bytes.error().kind != ErrorKind::kInvalid) return tl::unexpected(bytes.error());
    return fail(bytes.error().kind,
                fmt::format("{}: move it away to read every file from its start", bytes.error().message));
  }
  auto marks = parse_checkpoint(as_text(*bytes));
  if (!marks) {
    return fail(marks.error().kind,
                fmt::format("{} is not a checkpoint ({}): move it away to read every file from its start",
                            path.string(), marks.error().message));
  }
  return marks;
}

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return hash;
}

Result<std::uint64_t> head_hash(const runtime::File& file, Bytes length) {
  std::string head(length, '\0');
  const auto n = file.read_at(0, std::as_writable_bytes(std::span(head)));
  if (!n) return tl::unexpected(n.error());
  if (*n < length) return fail(ErrorKind::kInvalid, "shorter than its head");
  return hash_of(head);
}

}  // namespace weir::agent
