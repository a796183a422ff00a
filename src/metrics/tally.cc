#include "metrics/tally.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace weir::metrics {

namespace {
using Terms = std::vector<std::pair<std::string, std::uint64_t>>;

void add_reasons(Terms& terms, const char* name, const Reasons& reasons) {
  for (const auto& [reason, count] : reasons) terms.emplace_back(fmt::format("{}({})", name, reason), count);
}

Terms terms_of(const AgentTally& tally) {
  Terms terms{{"acked", tally.acked}, {"spooled", tally.spooled}, {"in memory", tally.in_memory}};
  add_reasons(terms, "shed", tally.shed);
  add_reasons(terms, "rejected", tally.rejected);
  return terms;
}

Terms terms_of(const SinkTally& tally) {
  Terms terms{{"stored", tally.stored},
              {"duplicates", tally.duplicates},
              {"dead-lettered", tally.dead_lettered},
              {"in memory", tally.in_memory}};
  add_reasons(terms, "skipped", tally.skipped);
  return terms;
}

std::int64_t difference_of(std::uint64_t in, const Terms& terms) {
  auto left = std::int64_t(in);
  for (const auto& term : terms) left -= std::int64_t(term.second);
  return left;
}

std::optional<std::string> check_of(const char* name, std::uint64_t in, const Terms& terms) {
  const std::int64_t difference = difference_of(in, terms);
  if (difference == 0) return std::nullopt;
  std::string text = fmt::format("{} {} is not", name, in);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? " " : " + ", terms[i].first, terms[i].second);
  }
  return text + (difference > 0 ? fmt::format(": {} unaccounted for", difference)
                                : fmt::format(": {} counted twice", -difference));
}
}  // namespace

std::uint64_t sum(const Reasons& reasons) {
  std::uint64_t total = 0;
  for (const auto& entry : reasons) total += entry.second;
  return total;
}

std::int64_t AgentTally::difference() const { return difference_of(read, terms_of(*this)); }
std::optional<std::string> AgentTally::check() const { return check_of("read", read, terms_of(*this)); }
std::int64_t SinkTally::difference() const { return difference_of(fetched, terms_of(*this)); }
std::optional<std::string> SinkTally::check() const { return check_of("fetched", fetched, terms_of(*this)); }

}  // namespace weir::metrics
