// What producers are told now: the operator's orders and the laws' decisions. Everything in it expires.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weir/flow.h"
#include "weir/types.h"

namespace weir::guard {

/// The operator's name as an author. Every other author is a law.
inline constexpr std::string_view kOperator = "operator";

/// Who asks what to do.
struct DirectiveQuery {
  std::string client_id;            ///< "" for any.
  std::vector<std::string> topics;  ///< None for any.
  /// False: the operator's only. For a producer whose end-to-end window does the laws' work: never both on one
  /// producer.
  bool laws = true;
};

/// Owned by one thread (or guarded by its owner's mutex).
class DirectiveBook {
 public:
  /// Replaces what this author said about the same scope in the same respect: a pause, records/s and bytes/s stand side
  /// by side.
  void put(std::string_view author, Directive directive);
  /// Takes back this author's directives whose scope lies within `scope`; those that were still in force.
  std::vector<Directive> take_back(std::string_view author, const Scope& scope, MonoTime now);
  void expire(MonoTime now);

  /// What is in force for the asker. One directive per scope, in the order of scopes: paused if any author says so, the
  /// lowest rate of each kind, the stricter one's reason, the first expiry.
  std::vector<Directive> active(MonoTime now, const DirectiveQuery& query = {}) const;

 private:
  struct Key {
    Scope scope;
    std::string author;
    int respect;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Directive> directives_;
};

/// True when everything `inner` covers, `outer` covers too.
bool within(const Scope& inner, const Scope& outer);

}  // namespace weir::guard
