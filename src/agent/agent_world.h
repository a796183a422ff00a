// A machine with an agent on it, for tests: a broker and a file system in memory, in virtual time. Every test ends with
// the books balanced.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "client/log_entry.h"
#include "client/memory_broker.h"
#include "client/producer_core.h"
#include "runtime/memory_file_system.h"

namespace weir::agent {

using namespace std::chrono_literals;

/// Steps the agent and its producer; the broker answers at once while it is `up` and `answering`.
struct World {
  ManualClock clock;
  client::MemoryBroker broker{clock};
  runtime::MemoryFileSystem files;
  AgentSettings settings{.paths = {"/log/app.log"}, .host_name = "host", .state_directory = "/state"};
  ProducerSettings producer_settings;
  std::shared_ptr<ProducerCore> core;
  std::unique_ptr<Agent> agent;

  World() {
    EXPECT_TRUE(files.make_directories("/log"));
    broker.create_topic("logs", 2);
    broker.create_topic("logs_error", 2);
    producer_settings.when_full = WhenFull::kReject;
    producer_settings.linger = 0ms;
  }
  void start() {
    core = broker.producer(producer_settings);
    auto opened = Agent::open(settings, std::make_unique<Producer>(core, false), files, clock);
    ASSERT_TRUE(opened) << opened.error().message;
    agent = std::move(*opened);
  }
  void run(Duration span, Duration step = 10ms) {
    for (Duration passed{}; passed < span; passed += step) {
      agent->step();
      for (int i = 0; i < 3; ++i) core->step();
      clock.advance(step);
    }
    agent->step();
    check();
  }
  /// Ends the process between two instructions: what it would write on the way out is not written.
  void kill() {
    const auto saved = files.read_all("/state/checkpoint.json", kMiB);
    agent.reset();
    core.reset();
    if (saved) {
      ASSERT_TRUE(files.replace("/state/checkpoint.json", *saved));
    } else {
      (void)files.remove("/state/checkpoint.json");
    }
  }
  void append(const std::string& path, const std::string& text) {
    auto file = files.open(path, runtime::OpenMode::kCreate);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(as_bytes(text)));
  }
  void rewrite(const std::string& path, const std::string& text) {
    auto file = files.open(path, runtime::OpenMode::kCreateEmpty);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->append(as_bytes(text)));
  }
  void lines(const std::string& path, int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
    append(path, text);
  }
  std::vector<ConsumedRecord> records() const {
    std::vector<ConsumedRecord> all;
    for (const char* topic : {"logs", "logs_error"}) {
      for (int p = 0; p < 2; ++p) {
        for (auto& record : broker.records({topic, PartitionId(p)})) all.push_back(std::move(record));
      }
    }
    return all;
  }
  /// Messages, in the order of the log.
  std::vector<std::string> messages() const {
    std::vector<std::string> all;
    client::LogEntryParser parser;
    for (const auto& record : records()) all.push_back(parser.parse(record.value.value_or("")).value().message);
    return all;
  }
  void check() const {
    const auto wrong = agent->stats().tally().check();
    EXPECT_FALSE(wrong) << *wrong;
  }
  /// 0, 1, 2, ... each once.
  void expect_lines(int count) const {
    auto all = messages();
    ASSERT_EQ(all.size(), std::size_t(count));
    std::set<std::string> distinct(all.begin(), all.end());
    EXPECT_EQ(distinct.size(), all.size());
    for (int i = 0; i < count; ++i) EXPECT_TRUE(distinct.contains("line " + std::to_string(i))) << i;
  }
};

inline std::string header(const ConsumedRecord& record, std::string_view name) {
  for (const auto& h : record.headers) {
    if (h.name == name) return h.value.value_or("");
  }
  return "";
}

}  // namespace weir::agent
