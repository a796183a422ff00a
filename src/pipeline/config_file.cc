#include "pipeline/config_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

namespace weir::pipeline {
namespace {

constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxFile = kMiB;

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  std::string place(const YAML::Mark& mark) const { return fmt::format("{}:{}", file_, mark.line + 1); }

  /// Adds what `node` holds to `section` under `prefix`.
  Result<void> flatten(const YAML::Node& node, const YAML::Mark& at, const std::string& prefix, int depth,
                       Section& section) {
    if (depth > kMaxDepth)
      return fail(ErrorKind::kInvalid, fmt::format("{}: {} is nested too deeply", place(at), prefix));
    switch (node.Type()) {
      case YAML::NodeType::Map:
        for (const auto& pair : node) {
          const std::string name = prefix.empty() ? pair.first.Scalar() : prefix + "." + pair.first.Scalar();
          if (auto done = flatten(pair.second, pair.first.Mark(), name, depth + 1, section); !done) return done;
        }
        return {};
      case YAML::NodeType::Sequence:
        if (!names_.insert(section.name + "/" + prefix).second) return twice(at, prefix);
        for (const auto& item : node) {
          if (!item.IsScalar())
            return fail(ErrorKind::kInvalid,
                        fmt::format("{}: {} takes a list of plain values", place(item.Mark()), prefix));
          section.settings.push_back({prefix, item.Scalar(), place(item.Mark())});
        }
        return {};
      case YAML::NodeType::Scalar:
        if (!names_.insert(section.name + "/" + prefix).second) return twice(at, prefix);
        section.settings.push_back({prefix, node.Scalar(), place(at)});
        return {};
      default:
        return fail(ErrorKind::kInvalid,
                    fmt::format("{}: {} has no value; give it one or take the line out", place(at), prefix));
    }
  }

 private:
  Result<void> twice(const YAML::Mark& at, const std::string& name) const {
    return fail(ErrorKind::kInvalid, fmt::format("{}: {} is set twice", place(at), name));
  }

  std::string file_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::vector<Section>> parse_config(const std::string& text, std::string_view name) {
  Reader reader(name);
  try {
    const YAML::Node root = YAML::Load(text);
    std::vector<Section> sections;
    if (root.IsNull()) return sections;
    if (!root.IsMap())
      return fail(ErrorKind::kInvalid,
                  fmt::format("{}: the file must be a map of sections, like `producer:`", reader.place(root.Mark())));
    std::set<std::string> seen;
    for (const auto& pair : root) {
      Section section{pair.first.Scalar(), reader.place(pair.first.Mark()), {}};
      if (!seen.insert(section.name).second)
        return fail(ErrorKind::kInvalid, fmt::format("{}: section {} stands twice", section.where, section.name));
      if (!pair.second.IsNull()) {
        if (!pair.second.IsMap())
          return fail(ErrorKind::kInvalid,
                      fmt::format("{}: {} is a section; its settings go below it", section.where, section.name));
        if (auto done = reader.flatten(pair.second, pair.first.Mark(), "", 0, section); !done)
          return tl::unexpected(done.error());
      }
      sections.push_back(std::move(section));
    }
    return sections;
  } catch (const YAML::Exception& error) {
    return fail(ErrorKind::kInvalid, fmt::format("{}: not YAML: {}", reader.place(error.mark), error.msg));
  }
}

Result<std::vector<Section>> load_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(ErrorKind::kNotFound, fmt::format("{}: cannot read the config file: {}", path, std::strerror(errno)));
  std::string text(kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad())
    return fail(ErrorKind::kIo, fmt::format("{}: cannot read the config file: {}", path, std::strerror(errno)));
  if (text.size() > kMaxFile)
    return fail(ErrorKind::kInvalid, fmt::format("{}: larger than 1 MiB, which no config file is", path));
  return parse_config(text, path);
}

}  // namespace weir::pipeline
