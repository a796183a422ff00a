// The agent's inputs, its gate and its threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "agent/agent_world.h"
#include "agent/generator.h"

namespace weir::agent {
namespace {

TEST(Agent, ReadsNoFasterThanThePipelineTakes) {
  // Field: 50,000 lines at once, the sink takes 1,000 a second, the cap is 5 MB: all arrive, none refused, the file
  // waits.
  World world;
  world.producer_settings.messages_per_second = 1000;
  world.producer_settings.buffer_memory = 5 * kMiB;
  world.lines("/log/app.log", 0, 50'000);
  world.start();
  world.run(10s, 50ms);
  const auto half_way = world.agent->stats();
  EXPECT_NEAR(double(half_way.acked), 11'000, 1500);
  EXPECT_LT(half_way.in_memory, 1000u);  // a short queue, not five megabytes of it
  EXPECT_GT(half_way.unread_bytes, 300'000u);
  world.run(45s, 50ms);
  world.expect_lines(50'000);
  EXPECT_TRUE(world.agent->stats().rejected.empty());
}

TEST(Agent, WithNothingToSendABrokerThatIsAwayHoldsUpNothing) {
  World world;
  world.broker.up = false;
  world.start();
  world.run(1s);
  EXPECT_EQ(world.agent->stats().stuck, "");
  world.lines("/log/app.log", 0, 1);
  world.run(1s);
  EXPECT_EQ(world.agent->stats().stuck, "no broker answered");
  world.broker.up = true;
  world.run(1s);
  EXPECT_EQ(world.agent->stats().stuck, "");
}

TEST(Agent, OnceReadsWhatIsThereAndEnds) {
  World world;
  world.settings.once = true;
  EXPECT_FALSE(Agent::open(world.settings,
                           std::make_unique<Producer>(world.broker.producer(world.producer_settings), false),
                           world.files, world.clock));
  world.append("/log/app.log", "a\nb\nlast");
  world.start();
  EXPECT_FALSE(world.agent->ended());
  world.run(500ms);
  EXPECT_TRUE(world.agent->ended());
  EXPECT_EQ(world.messages().size(), 3u);
  EXPECT_EQ(world.agent->stop(0s), 0u);
  world.agent.reset();
  world.start();  // and a second time: nothing is left
  world.run(500ms);
  EXPECT_TRUE(world.agent->ended());
  EXPECT_EQ(world.messages().size(), 3u);
}

TEST(Agent, StandardInputEndsAtItsEndAndItsLastLineNeedsNoLineEnd) {
  World world;
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  world.settings.paths.clear();
  world.settings.standard_input = true;
  world.settings.input_descriptor = pipe_ends[0];
  world.start();
  world.run(50ms);
  ASSERT_EQ(::write(pipe_ends[1], "one\ntw", 6), 6);
  world.run(50ms);
  EXPECT_EQ(world.messages(), std::vector<std::string>{"one"});
  EXPECT_FALSE(world.agent->ended());
  ASSERT_EQ(::write(pipe_ends[1], "o\nlast", 6), 6);
  ::close(pipe_ends[1]);
  world.run(50ms);
  EXPECT_TRUE(world.agent->ended());
  const auto all = world.messages();
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()), (std::set<std::string>{"last", "one", "two"}));
  ::close(pipe_ends[0]);
}

TEST(Agent, GeneratorKeepsItsScheduleOrSaysHowFarItIsBehind) {
  World world;
  world.settings.paths.clear();
  world.settings.generate_per_second = 1000;
  world.producer_settings.buffer_memory = kMiB;
  world.start();
  world.run(2s);
  auto stats = world.agent->stats();
  EXPECT_NEAR(double(stats.offered), 2000, 2);
  EXPECT_LE(stats.behind, 2u);
  world.broker.answering = false;
  world.run(5s);
  stats = world.agent->stats();
  EXPECT_NEAR(double(stats.offered), 7000, 2);
  EXPECT_GT(stats.behind, 2000u);
  EXPECT_EQ(stats.offered, stats.read + stats.behind);
  world.agent->stop_inputs();
  world.broker.answering = true;
  world.run(5s);
  EXPECT_EQ(world.agent->stats().offered, stats.offered);
  EXPECT_EQ(world.agent->stats().in_memory, 0u);
  EXPECT_EQ(world.records().size(), world.agent->stats().read);
}

TEST(Generator, HasTheSharesItPromises) {
  std::map<std::string_view, int> levels;
  std::set<std::string> servers;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto entry = Generator::entry(i);
    ++levels[entry.level];
    servers.insert(entry.server_id);
  }
  EXPECT_EQ(levels["INFO"], 9000);
  EXPECT_EQ(levels["WARN"], 800);
  EXPECT_EQ(levels["ERROR"], 200);
  EXPECT_EQ(servers.size(), 64u);
  EXPECT_EQ(Generator(1000, MonoTime{}).due(MonoTime{} + 999ms), 1000u);
}

TEST(Agent, ReadsSendsAndEndsWithItsThreads) {
  client::MemoryBroker broker(system_clock());
  broker.create_topic("logs", 2);
  broker.create_topic("logs_error", 2);
  runtime::MemoryFileSystem files;
  ASSERT_TRUE(files.make_directories("/log"));
  auto file = files.open("/log/app.log", runtime::OpenMode::kCreate).value();
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(file->append(as_bytes("line ERROR " + std::to_string(i) + "\n")));
  auto agent = Agent::open({.paths = {"/log"}, .once = true, .state_directory = "/state"},
                           std::make_unique<Producer>(broker.producer({.linger = 1ms}), true), files, system_clock())
                   .value();
  Registry registry;
  agent->expose(registry);
  agent->start();
  for (int i = 0; i < 4000 && !agent->ended(); ++i) {
    EXPECT_FALSE(registry.text().empty());
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_TRUE(agent->ended());
  EXPECT_EQ(agent->stop(5s), 0u);
  EXPECT_EQ(agent->stats().acked, 3000u);
  EXPECT_FALSE(agent->stats().tally().check());
  EXPECT_EQ(broker.values("logs_error").size(), 3000u);
}

}  // namespace
}  // namespace weir::agent
