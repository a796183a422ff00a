// What producers are told now: the operator's orders and the laws' decisions. Everything in it expires.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weir/flow.h"
#include "weir/types.h"

namespace weir::guard {

/// Owned by one thread (or guarded by its owner's mutex).
class DirectiveBook {
 public:
  /// Who gave it; an operator's and a law's directive for one scope stand side by side, the stricter wins.
  enum class From { kOperator, kLaw };

  /// Replaces what this origin said about the same scope, for the same thing (a pause and a limit are different
  /// things).
  void put(From from, Directive directive);
  /// Takes back this origin's directives whose scope lies within `scope`; returns what was taken back.
  std::vector<Directive> take_back(From from, const Scope& scope, MonoTime now);
  void expire(MonoTime now);

  /// One per scope, in the order of scopes: paused if any is, the lowest rate of each kind, the stricter one's reason.
  std::vector<Directive> active(MonoTime now) const;
  /// Those of active() that may concern a producer with this client id ("" for any) writing to one of `topics` (none
  /// for any).
  std::vector<Directive> active_for(MonoTime now, const std::string& client_id,
                                    const std::vector<std::string>& topics) const;

 private:
  struct Key {
    Scope scope;
    From from;
    bool pause;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Directive> directives_;
};

/// True when everything `inner` covers, `outer` covers too.
bool within(const Scope& inner, const Scope& outer);

}  // namespace weir::guard
