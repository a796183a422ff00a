#include "guard/directive_book.h"

#include <algorithm>

namespace weir::guard {
namespace {

int respect_of(const Directive& directive) { return directive.pause ? 0 : directive.records_per_second ? 1 : 2; }

void tighten(std::optional<double>& rate, const std::optional<double>& other) {
  if (other) rate = std::min(rate.value_or(*other), *other);
}

/// Pauses before rates, lower rates before higher ones.
bool stricter(const Directive& a, const Directive& b) {
  if (a.pause != b.pause) return a.pause;
  if (a.records_per_second.has_value() != b.records_per_second.has_value()) return a.records_per_second.has_value();
  return a.records_per_second ? *a.records_per_second < *b.records_per_second : a.bytes_per_second < b.bytes_per_second;
}

bool concerns(const Directive& directive, const DirectiveQuery& query) {
  const Scope& scope = directive.scope;
  if (!query.client_id.empty() && !scope.client_id.empty() && scope.client_id != query.client_id) return false;
  return query.topics.empty() || scope.topic.empty() ||
         std::ranges::find(query.topics, scope.topic) != query.topics.end();
}

}  // namespace

bool within(const Scope& inner, const Scope& outer) {
  return (outer.client_id.empty() || outer.client_id == inner.client_id) &&
         (outer.topic.empty() || outer.topic == inner.topic) &&
         (!outer.partition || outer.partition == inner.partition);
}

void DirectiveBook::put(std::string_view author, Directive directive) {
  Key key{directive.scope, std::string(author), respect_of(directive)};
  directives_.insert_or_assign(std::move(key), std::move(directive));
}

std::vector<Directive> DirectiveBook::take_back(std::string_view author, const Scope& scope, MonoTime now) {
  std::vector<Directive> taken;
  std::erase_if(directives_, [&](const auto& entry) {
    if (entry.first.author != author || !within(entry.first.scope, scope)) return false;
    if (entry.second.active(now)) taken.push_back(entry.second);
    return true;
  });
  return taken;
}

void DirectiveBook::expire(MonoTime now) {
  std::erase_if(directives_, [&](const auto& entry) { return !entry.second.active(now); });
}

std::vector<Directive> DirectiveBook::active(MonoTime now, const DirectiveQuery& query) const {
  std::vector<Directive> out;
  for (const auto& [key, directive] : directives_) {
    if (!directive.active(now) || !concerns(directive, query) || (!query.laws && key.author != kOperator)) continue;
    if (out.empty() || out.back().scope != key.scope) {
      out.push_back(directive);
      continue;
    }
    Directive& merged = out.back();
    if (stricter(directive, merged)) {
      merged.reason = directive.reason;
      merged.signal = directive.signal;
    }
    merged.pause = merged.pause || directive.pause;
    tighten(merged.records_per_second, directive.records_per_second);
    tighten(merged.bytes_per_second, directive.bytes_per_second);
    merged.expires = std::min(merged.expires, directive.expires);
  }
  return out;
}

}  // namespace weir::guard
