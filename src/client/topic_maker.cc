#include "client/topic_maker.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "runtime/process.h"

namespace weir::client {

namespace {
using namespace std::chrono_literals;

constexpr Duration kRetry = 500ms;

bool may_pass(ErrorKind kind) {
  return kind == ErrorKind::kUnavailable || kind == ErrorKind::kTimeout || kind == ErrorKind::kIo ||
         kind == ErrorKind::kClosed;
}
}  // namespace

NewTopic dead_letter_topic(const std::string& name, std::int32_t partitions) {
  return {
      .name = name, .partitions = partitions, .configs = {{"max.message.bytes", std::to_string(kLargestDeadLetter)}}};
}

std::vector<NewTopic> pipeline_topics(const std::string& topic, const std::string& urgent_topic,
                                      const std::string& dead_letters) {
  return {{.name = topic, .partitions = kLogPartitions, .configs = {}},
          {.name = urgent_topic, .partitions = kLogPartitions, .configs = {}},
          dead_letter_topic(dead_letters, kDeadLetterPartitions)};
}

Result<void> make_missing_topics(Admin& admin, const std::vector<NewTopic>& topics) {
  std::vector<std::string> names;
  for (const NewTopic& topic : topics) names.push_back(topic.name);
  // Asked first: who may write to topics may not always make them.
  const auto there = admin.topics(names);
  if (!there) return tl::unexpected(there.error());
  for (const NewTopic& topic : topics) {
    if (std::ranges::any_of(*there, [&](const auto& known) { return known.name == topic.name; })) continue;
    if (auto made = admin.create_topic(topic); !made && made.error().kind != ErrorKind::kExists) return made;
  }
  return {};
}

TopicMaker::TopicMaker(AdminSettings admin, std::vector<NewTopic> topics, std::function<void()> ready)
    : admin_(std::move(admin)), topics_(std::move(topics)), ready_(std::move(ready)), thread_([this] { run(); }) {}

TopicMaker::~TopicMaker() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  admin_.interrupt();
  thread_.join();
}

void TopicMaker::run() {
  runtime::name_thread("topics");
  log::Every complaints(30s);
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto made = make_missing_topics(admin_, topics_);
    lock.lock();
    if (stopping_) return;
    if (!made && may_pass(made.error().kind)) {
      if (complaints.allow(system_clock().now().mono)) log::warn("waiting for a broker: {}", made.error().message);
      wake_.wait_for(lock, kRetry, [this] { return stopping_; });
      continue;
    }
    if (!made) log::warn("the topics could not be made: {}", made.error().message);
    lock.unlock();
    return ready_();
  }
}

}  // namespace weir::client
