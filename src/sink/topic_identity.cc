#include "sink/topic_identity.h"

#include <fmt/format.h>

#include <utility>

namespace weir::sink {

TopicIdentity::Verdict TopicIdentity::unknown(Error why) {
  why_ = std::move(why);
  return Verdict::kUnknown;
}

TopicIdentity::Verdict TopicIdentity::check() {
  if (!known_) {
    auto kept = store_.topic_ids();
    if (!kept) return unknown(kept.error());
    known_ = std::move(*kept);
  }
  const Result<TopicIds> now = ask_();
  if (!now) return unknown(now.error());
  for (const auto& [topic, id] : *now) {
    if (id.empty()) continue;
    if (const auto kept = known_->find(topic); kept != known_->end()) {
      if (kept->second == id) continue;
      why_ = {ErrorKind::kInvalid,
              fmt::format("{} has records of topic {} with id {}, and {} has that topic with id {}: it was deleted and "
                          "made anew; use another --data",
                          here_, topic, kept->second, there_, id)};
      return Verdict::kOther;
    }
    if (auto done = store_.set_topic_id(topic, id); !done) return unknown(done.error());
    known_->emplace(topic, id);
  }
  return Verdict::kSame;
}

}  // namespace weir::sink
