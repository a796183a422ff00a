// Whether the topics are still the ones the store has records of.
//
// A topic that is deleted and made anew keeps its name and gets another id and offsets from 0. A consumer that reads by
// name would go on in the middle of the new log and pass over what lies before. The client library does not tell ids,
// so the broker is asked apart, and the order of things makes the answer hold for every record:
//
//   records fetched -> asked for the ids -> the known ids -> records stored
//
// An id never comes back, so what was fetched before such an answer was asked for came from the known topic. Threads:
// owned by one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "sink/store.h"
#include "weir/types.h"

namespace weir::sink {

/// The ids of the topics that exist; an empty one: the broker is too old to have any.
using AskTopicIds = std::function<Result<TopicIds>()>;

class TopicIdentity {
 public:
  enum class Verdict {
    kSame,     ///< or gone, or without an id: nothing speaks against the store's records
    kOther,    ///< for good; why() is one line with the topic, both ids and the fix
    kUnknown,  ///< could not be told now; why() says why
  };

  /// `store` outlives this; `here` and `there` name it and the cluster in why().
  TopicIdentity(Store& store, AskTopicIds ask, std::string here, std::string there)
      : store_(store), ask_(std::move(ask)), here_(std::move(here)), there_(std::move(there)) {}

  /// Asks, and keeps the id of a topic that is seen for the first time in the store.
  Verdict check();
  const Error& why() const { return why_; }

 private:
  Verdict unknown(Error why);

  Store& store_;
  const AskTopicIds ask_;
  const std::string here_;
  const std::string there_;
  std::optional<TopicIds> known_;  // what the store has, once it was read
  Error why_;
};

}  // namespace weir::sink
