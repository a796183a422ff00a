#include "bench/explain/explain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace weir::bench {
namespace {

struct Outcome {
  Observations seen;
  Diagnosis diagnosis;
  std::string text;
  nlohmann::json json;
};

Outcome outcome_of(const Explainer& explainer) {
  auto seen = explainer.result();
  if (!seen) throw std::runtime_error(seen.error().message);
  Diagnosis d = diagnose(*seen);
  return {*seen, d, to_text(*seen, d), nlohmann::json::parse(to_json(*seen, d))};
}

Outcome explain(std::string_view input) {
  Explainer explainer;
  explainer.feed(input);
  explainer.end_of_input();
  return outcome_of(explainer);
}

constexpr std::int64_t kT0 = 1618685061270;

std::string message(std::int64_t n, std::int64_t stamp, double latency) {
  return fmt::format("Message {} received | Timestamp: {} | Latency: {}\n", n, stamp, latency);
}
// Stamped `tick` ms after kT0, received `receive_ms` after it.
std::string received(std::int64_t n, std::int64_t tick, double receive_ms) {
  return message(n, kT0 + tick, receive_ms - static_cast<double>(tick));
}
std::string queue(std::int64_t n) { return fmt::format("IN QUEUE: {}\n", n); }

// What the question shows: the latency of the first messages and of the last one, with a gap between.
std::string question_lines() {
  const double first[] = {12.360107421875, 13.025390625,    13.08544921875, 13.156005859375, 13.1923828125,
                          13.21875,        13.245849609375, 13.29833984375, 13.348388671875, 13.389892578125,
                          13.43701171875,  13.49755859375,  13.54345703125, 13.581787109375, 13.626708984375,
                          13.661376953125, 13.695556640625, 13.720703125,   13.75537109375,  13.78857421875,
                          13.81396484375};
  std::string lines;
  for (int i = 0; i < 21; ++i) lines += message(i + 1, kT0, first[i]);
  return lines + "[....]\n" + message(14485, kT0 + 67, 1061.004150390625);
}

std::string question_queue() {
  std::string lines = "Executing data generation step 0...\n";
  for (int i = 0; i <= 16; ++i) lines += queue(i);
  return lines + "[...]\n" + queue(14484) + "Data generation done!\n";
}

// A consumer behind a burst: one stamp a millisecond, a fixed time for each message.
std::string burst(int count, double per_ms, double service_us, double start_ms = 10) {
  std::string lines;
  double receive = start_ms;
  for (int i = 0; i < count; ++i) {
    const auto stamp = static_cast<std::int64_t>(i / per_ms);
    receive = std::max(receive, static_cast<double>(stamp) + start_ms) + service_us / 1000;
    lines += message(i + 1, kT0 + stamp, receive - static_cast<double>(stamp));
  }
  return lines;
}

TEST(Explain, QuestionsFiguresPointAtTheConsumer) {
  const Outcome got = explain(message(1, kT0, 12.36) + message(14485, kT0 + 67, 1061.0));
  EXPECT_EQ(got.json["samples"], 2);
  EXPECT_NEAR(got.json["service_per_s"].get<double>(), 12983, 3);
  EXPECT_NEAR(got.json["arrival_per_s"].get<double>(), 216200, 100);
  EXPECT_NEAR(got.json["slope_ms_per_1000"].get<double>(), 72.4, 0.05);
  EXPECT_TRUE(got.json["queue_growth_per_record"].is_null());
  EXPECT_EQ(got.json["bottleneck"], "consumer");
}

TEST(Explain, GrowingLatencyWinsOverAGrowingQueue) {
  const Outcome got = explain(question_lines() + question_queue());
  EXPECT_EQ(got.json["bottleneck"], "consumer");
  EXPECT_EQ(got.json["samples"], 22);
  EXPECT_EQ(got.json["queue_growth_per_record"], 1.0);
  EXPECT_EQ(got.seen.max_queue, 14484);
  EXPECT_EQ(got.seen.unknown_lines, 4);
  EXPECT_GT(got.diagnosis.confidence, 0.6);
  EXPECT_LT(got.diagnosis.confidence, 0.9);  // 20 of 14,484 steps are not the whole story
  ASSERT_FALSE(got.diagnosis.advice.empty());
  EXPECT_NE(got.diagnosis.advice[0].find("printing"), std::string::npos);
  EXPECT_NE(got.diagnosis.advice[1].find("window"), std::string::npos);
  for (const char* said : {"1,450 tweets", "112 ms", "LogAppendTime", "not one delivery report", "sends nothing",
                           "flush()", "Byte quotas would not help", "prefetch", "216,"}) {
    EXPECT_NE(got.text.find(said), std::string::npos) << said << "\n" << got.text;
  }
  ASSERT_EQ(got.seen.windows.size(), 2U);  // 41 us each at first, 77 later
  EXPECT_NEAR(1e6 / got.seen.windows[0].per_s, 41.5, 0.1);
  EXPECT_NEAR(1e6 / got.seen.windows[1].per_s, 77.03, 0.01);
  EXPECT_NEAR(*got.seen.waiting_at_last_stamp, 13775, 5);
}

TEST(Explain, ReadsAPageWithProseAndProgramTextAround) {
  const std::string page =
      "\xef\xbb\xbfKafka 延迟为什么一直增长？\r\n\r\n• 单个 Broker，一个分区\r\n\r\n"
      "    print(\"IN QUEUE: {}\".format(len(p)))\r\n"
      "    print('[INFO] Local producer queue is full (%d messages awaiting delivery): retrying\\n' % len(p))\r\n"
      "    print(\"Message {} received | Timestamp: {} | Latency: {}\".format(n, t, d))\r\n"
      "Message {} received | Timestamp: {} | Latency: {}\r\n消费者侧\r\n\r\n";
  std::string crlf;
  for (char c : question_lines() + "生产者侧\n" + question_queue()) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  const Outcome plain = explain(question_lines() + question_queue());
  const Outcome got = explain(page + crlf + "Message 9 of the thread: thanks!");
  EXPECT_EQ(got.json, plain.json);
  EXPECT_EQ(got.seen.unknown_lines, plain.seen.unknown_lines + 9);
}

TEST(Explain, QuotedAndIndentedLinesCount) {
  EXPECT_EQ(
      explain("> Message 1 received | Timestamp: 5 | Latency: 1\n  • IN QUEUE: 3\n\xc2\xa0\xe3\x80\x80IN QUEUE: 4")
          .json["samples"],
      1);
}

TEST(Explain, LinesOfALoggerCount) {
  for (const char* prefix :
       {"[INFO] ", "INFO:root:", "2026-01-01 10:00:00,123 ", "2026-01-01T10:00:00Z INFO ", "consumer-1  | ",
        "Jan  5 10:00:00 web app[7]: ", "> [2026-01-01 10:00] DEBUG bench - ", "4: "}) {
    const std::string before = prefix;
    EXPECT_TRUE(
        std::holds_alternative<MessageLine>(parse_line(before + "Message 1 received | Timestamp: 5 | Latency: 1.5")))
        << before;
    EXPECT_TRUE(std::holds_alternative<QueueLine>(parse_line(before + "IN QUEUE: 7"))) << before;
    EXPECT_TRUE(std::holds_alternative<QueueFullLine>(
        parse_line(before + "Local producer queue is full (9 messages awaiting delivery): retrying")))
        << before;
  }
  for (const char* line : {"it says IN QUEUE: 7", "print(4, 'Message 1 received | Timestamp: 5 | Latency: 1.5",
                           "# 3 \"IN QUEUE: 7", "x1Message 1 received | Timestamp: 5 | Latency: 1.5"})
    EXPECT_TRUE(std::holds_alternative<UnknownLine>(parse_line(line))) << line;
}

TEST(Explain, FlatLatencyWithAGrowingQueueIsTheProducers) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += queue(i * 7 / 10) + message(i + 1, kT0 + i, 8 + i % 3);
  const Outcome got = explain(lines);
  EXPECT_EQ(got.json["bottleneck"], "producer");
  EXPECT_NEAR(got.json["queue_growth_per_record"].get<double>(), 0.7, 0.001);
  EXPECT_NE(got.text.find("acknowledgements come slower"), std::string::npos);
  EXPECT_GT(got.diagnosis.confidence, 0.9);
}

TEST(Explain, FlatLatencyWithABalancedQueueIsNobodys) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += queue(i % 2) + message(i + 1, kT0 + i, 8 + i % 3);
  const Outcome got = explain(lines);
  EXPECT_EQ(got.json["bottleneck"], "none");
  EXPECT_NEAR(got.json["queue_growth_per_record"].get<double>(), 0, 0.001);
  EXPECT_GT(got.diagnosis.confidence, 0.9);
}

TEST(Explain, ABurstThatIsTakenAtOnceIsFlat) { EXPECT_EQ(explain(burst(14485, 216, 3.3)).json["bottleneck"], "none"); }
TEST(Explain, ASlowConsumerBehindABurstGrows) {
  const Outcome got = explain(burst(14485, 216, 77));
  EXPECT_EQ(got.json["bottleneck"], "consumer");
  EXPECT_GT(got.diagnosis.confidence, 0.95);
  EXPECT_EQ(got.seen.windows.size(), 1U);
}

TEST(Explain, AStepInTheServiceShowsInItsWindows) {
  std::string lines;
  double receive = 10;
  for (int i = 0; i < 10000; ++i) {
    receive += i < 5000 ? 0.05 : 0.2;
    lines += received(i + 1, i / 200, receive);
  }
  const Outcome got = explain(lines);
  ASSERT_GE(got.seen.windows.size(), 2U);
  EXPECT_NEAR(got.seen.windows.front().per_s, 20000, 100);
  EXPECT_NEAR(got.seen.windows.back().per_s, 5000, 100);
  EXPECT_NE(got.text.find("it changed"), std::string::npos);
}

TEST(Explain, BurstsOfRecordsThatWereThereAlreadyAreTheBrokers) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) {  // 100 records come together every 50 ms; the consumer takes 5 us for each
    const int batch = i / 100;
    lines += received(i + 1, i / 50, 20 + 50 * batch + 0.005 * (i % 100));
  }
  const Outcome got = explain(lines);
  EXPECT_EQ(got.json["bottleneck"], "broker");
  EXPECT_GT(got.diagnosis.confidence, 0.5);
}

// On a busy machine the consumer runs for 2 ms and stands still for 8: it is too slow all the same.
TEST(Explain, AConsumerThatIsInterruptedIsStillTheConsumer) {
  std::string lines;
  for (int i = 0; i < 14485; ++i) {
    const int pauses = i / 26;
    lines += received(i + 1, i / 216, 10 + 0.077 * i + 8 * pauses);
  }
  EXPECT_EQ(explain(lines).json["bottleneck"], "consumer");
}

// Field case: two-record requests served one at a time at 10 ms each are 200/s; 1,000/s are offered (stamped when
// offered).
TEST(Explain, SmallBatchesQueueInTheProducer) {
  const auto run = [](int batch) {
    std::string lines;
    double broker_free = 0;
    for (int i = 0; i < 3000; ++i) {
      if (i % batch == 0) broker_free = std::max(broker_free, static_cast<double>(i + batch)) + 10;
      const double waiting = std::max(0.0, i - std::floor((i - 10.0) / 10) * batch);
      lines +=
          queue(static_cast<std::int64_t>(batch == 2 ? waiting : i % batch)) + message(i + 1, kT0 + i, broker_free - i);
    }
    return explain(lines);
  };
  const Outcome small = run(2);
  EXPECT_EQ(small.json["bottleneck"], "consumer") << "growing latency wins over a growing queue";
  EXPECT_NEAR(*small.seen.slope_ms_per_1000 / 1000, 4.0, 0.2);  // ms per ms
  EXPECT_NEAR(*small.seen.arrival_per_s, 1000, 1);
  EXPECT_NEAR(*small.seen.service_per_s, 200, 1);
  EXPECT_NE(small.text.find("arrival 1,000/s > service 200/s, queue in the producer"), std::string::npos) << small.text;
  const Outcome large = run(100);
  EXPECT_EQ(large.json["bottleneck"], "none");
  EXPECT_NEAR(*large.seen.slope_ms_per_1000 / 1000, 0, 0.01);
}

TEST(Explain, GrowingLatencyWinsOverAGrowingQueueHoweverItComes) {
  for (const int batch : {1, 10, 100}) {
    for (const int count : {10, 100, 3000}) {
      for (const double noise : {0.0, 0.4}) {
        std::string lines;
        for (std::int64_t i = 0; i < count; ++i) {
          lines += queue(i / 2) +
                   message(i + 1, kT0 + i / batch * batch,
                           10 + 0.552 * static_cast<double>(i) + noise * static_cast<double>((i * 7) % 5 - 2));
        }
        const Outcome got = explain(lines);
        EXPECT_EQ(got.json["bottleneck"], "consumer") << batch << " " << count << " " << noise << "\n" << got.text;
        EXPECT_GE(got.diagnosis.confidence, 0.1) << got.text;
      }
    }
  }
}

TEST(Explain, QueueLinesThatAreFewAreNotTakenForOnePerRecord) {
  std::string lines;
  for (std::int64_t i = 0; i < 14; ++i) lines += queue(i * 1000);
  const Outcome got = explain(lines);
  EXPECT_EQ(got.json["bottleneck"], "producer");
  EXPECT_EQ(got.json["queue_growth_per_record"], 1000.0);  // the mean step between neighbouring lines
  EXPECT_NE(got.text.find("+1,000 from line to line"), std::string::npos) << got.text;
  EXPECT_NE(got.text.find("lines are missing"), std::string::npos);
  EXPECT_EQ(got.text.find("not one delivery report"), std::string::npos);
}

TEST(Explain, OnlyUnknownLinesAndFullQueuesEndARunOfQueueLines) {
  EXPECT_EQ(*explain(queue(1) + message(1, kT0, 1) + queue(2) + "\n" + queue(3)).seen.queue_growth_per_record, 1.0);
  EXPECT_EQ(*explain(queue(1) + queue(2) + "[...]\n" + queue(900) + queue(900)).seen.queue_growth_per_record, 0.5);
  EXPECT_EQ(*explain(queue(0) + queue(1) + "IN QUEUE: nan\n" + queue(70)).seen.queue_growth_per_record, 1.0);
  const Outcome full =
      explain(queue(99999) + queue(100000) +
              "[INFO] Local producer queue is full (100000 messages awaiting delivery): Trying again...\n\n" +
              queue(1) + queue(2));
  EXPECT_EQ(full.json["queue_growth_per_record"], 1.0);
  EXPECT_EQ(full.seen.queue_full_lines, 1);
  EXPECT_EQ(full.seen.unknown_lines, 0);
  EXPECT_EQ(full.json["bottleneck"], "producer");
  EXPECT_NE(full.text.find("full 1 times"), std::string::npos);
}

TEST(Explain, ReadsTheLineOfTheBench) {
  const Outcome got = explain(
      "{\"question\":{\"messages\":14485,\"first_ms\":10.0,\"last_ms\":1061.0,\"max_ms\":1061.0,\"slope_ms_per_1000\":"
      "72.4,"
      "\"max_queue\":13000,\"acked_during_loop\":1485,\"arrival_per_s\":216000.0,\"service_per_s\":12983.0},\"no_"
      "work\":{}}\n");
  EXPECT_EQ(got.json["bottleneck"], "consumer");
  EXPECT_EQ(got.json["samples"], 14485);
  EXPECT_NEAR(got.json["queue_growth_per_record"].get<double>(), 0.897, 0.001);
  for (const char* line : {"{\"question\":", "{\"question\":1}", "{\"question\":{\"messages\":1e400}}",
                           "{\"question\":{\"messages\":-5}}"}) {
    Explainer explainer;
    explainer.feed(line);
    explainer.end_of_input();
    EXPECT_FALSE(explainer.result()) << line;
  }
}

TEST(Explain, ReadsTheWordsOfTheBench) {
  const Outcome got = explain(
      "(a) as in the question: a burst, 77 us of work for each message\n"
      "  14,485 messages, arrival 295,592/s, service 12,730/s\n"
      "  receive minus append: first 15.0 ms, last 1103.8, p50 560.1, p99 1090.0, max 1104.2, +74.00 ms per 1,000\n"
      "  mean time of a message: queued 0.001 ms sent 1.0 ms\n"
      "  producer's queue: 11,666 at most, 2,836 acknowledged while the loop ran\n"
      "(b) the same burst, no work: the rate of the messages is not the cause\n"
      "  14,485 messages, arrival unknown, service 567,457/s\n"
      "  producer's queue: 1 at most, 14,485 acknowledged while the loop ran\n");
  EXPECT_EQ(got.json["bottleneck"], "consumer");
  EXPECT_EQ(got.json["samples"], 14485);
  EXPECT_EQ(got.json["service_per_s"], 12730.0);
  EXPECT_EQ(got.json["slope_ms_per_1000"], 74.0);
  EXPECT_NEAR(got.json["queue_growth_per_record"].get<double>(), 0.804, 0.001);
  EXPECT_EQ(got.seen.max_queue, 11666);
  EXPECT_EQ(got.seen.max_ms, 1104.2);
}

TEST(Explain, TwoInputsAreNotNeighbours) {
  Explainer explainer;
  explainer.feed("IN QUEUE: 5");
  explainer.end_of_input();
  explainer.feed("IN QUEUE: 500");
  explainer.end_of_input();
  EXPECT_FALSE(explainer.result()->queue_growth_per_record);
  EXPECT_EQ(explainer.result()->queue_lines, 2);
}

TEST(Explain, LinesWhoseFieldsAreNotNumbersAreUnknown) {
  for (const char* line :
       {"Message nan received | Timestamp: 1 | Latency: 1", "Message 1 received | Timestamp: 1 | Latency: nan",
        "Message 1 received | Timestamp: 1 | Latency: inf", "Message 1 received | Timestamp: 1 | Latency: 1e999",
        "Message 1 received | Timestamp: 1 | Latency: 1e300",
        "Message 99999999999999999999 received | Timestamp: 1 | Latency: 1",
        "Message 1 received | Timestamp: -1 | Latency: 1", "Message 1 received | Timestamp: 1.5 | Latency: 1",
        "Message 1 received | Timestamp: 1 | Latency:", "Message 1 received | Timestamp: 1 | Latency: 1 x",
        "Message 1 received", "IN QUEUE: {}", "IN QUEUE:", "IN QUEUE: -1", "IN QUEUE: 1e3",
        "IN QUEUE: 18446744073709551616", "Local producer queue is full (%d messages awaiting delivery)",
        "I saw IN QUEUE: 5 there"}) {
    EXPECT_TRUE(std::holds_alternative<UnknownLine>(parse_line(line))) << line;
  }
}

TEST(Explain, NothingRecognisedIsAClearError) {
  for (std::string_view input :
       {std::string_view(""), std::string_view("\n\n"), std::string_view("hello\nworld\0\xff\n", 14)}) {
    Explainer explainer;
    explainer.feed(input);
    explainer.end_of_input();
    ASSERT_FALSE(explainer.result());
    EXPECT_NE(explainer.result().error().message.find("nothing recognised"), std::string::npos);
  }
}

TEST(Explain, OneStampGivesNoArrivalRate) {
  const Outcome short_run = explain(message(1, kT0, 10) + message(2, kT0, 10.1));
  EXPECT_TRUE(short_run.json["arrival_per_s"].is_null());
  EXPECT_NEAR(short_run.json["service_per_s"].get<double>(), 10000, 1);
  EXPECT_EQ(short_run.json["bottleneck"], "unknown");
  EXPECT_EQ(short_run.json["confidence"], 0.0);
  const Outcome single = explain(message(1, kT0, 10));
  for (const char* key : {"arrival_per_s", "service_per_s", "slope_ms_per_1000", "queue_growth_per_record"}) {
    EXPECT_TRUE(single.json[key].is_null()) << key;
  }
}

TEST(Explain, NegativeLatenciesAreNamedAsClockSkew) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += message(i + 1, kT0 + i, -40 + i % 5);
  const Outcome got = explain(lines);
  EXPECT_EQ(got.json["bottleneck"], "none");
  EXPECT_NE(got.text.find("clocks disagree"), std::string::npos);
}

TEST(Explain, FallingLatencyIsABacklogBeingWorkedOff) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += message(i + 1, kT0 + std::int64_t{10} * i, 900 - 0.8 * i);
  const Outcome got = explain(lines);
  EXPECT_EQ(got.json["bottleneck"], "none");
  EXPECT_NE(got.text.find("falling"), std::string::npos);
  EXPECT_GT(got.diagnosis.confidence, 0.5) << got.text;
}

TEST(Explain, RepeatedNumberingIsANewRunNotAJump) {
  const std::string once = burst(2000, 216, 77);
  const Outcome one = explain(once);
  const Outcome two = explain(once + once);
  EXPECT_NEAR(*two.seen.service_per_s, *one.seen.service_per_s, 1);
  EXPECT_NEAR(*two.seen.slope_ms_per_1000, *one.seen.slope_ms_per_1000, 0.01);
}

TEST(Explain, LongLinesAreCutNotKept) {
  std::vector<std::size_t> sizes;
  LineSplitter splitter([&](std::string_view line) { sizes.push_back(line.size()); });
  const std::string chunk(kMiB, 'x');
  for (int i = 0; i < 4; ++i) splitter.feed(chunk);
  splitter.feed("\nab");
  splitter.feed("c\r\nd");
  splitter.finish();
  splitter.finish();
  EXPECT_EQ(sizes, (std::vector<std::size_t>{LineSplitter::kMaxLine, 3, 1}));
}

RC_GTEST_PROP(Explain, ChunksDoNotMatter, ()) {
  static const std::string kInput = question_lines() + question_queue();
  static const nlohmann::json kWhole = explain(kInput).json;
  Explainer explainer;
  for (std::size_t at = 0; at < kInput.size();) {
    const auto size = static_cast<std::size_t>(*rc::gen::inRange(1, 300));
    explainer.feed(std::string_view(kInput).substr(at, size));
    at += size;
  }
  explainer.end_of_input();
  RC_ASSERT(outcome_of(explainer).json == kWhole);
}

RC_GTEST_PROP(Explain, AnyNumbersGiveFiniteJson,
              (const std::vector<std::tuple<std::int64_t, std::int64_t, double>>& rows)) {
  std::string lines = queue(3);
  for (const auto& [n, stamp, latency] : rows)
    lines += message(n, stamp, latency) + message(n & 0xffff, stamp & 0xfffff, latency);
  const Outcome got = explain(lines);
  RC_ASSERT(got.diagnosis.confidence >= 0.0 && got.diagnosis.confidence <= 1.0);
}

}  // namespace
}  // namespace weir::bench
