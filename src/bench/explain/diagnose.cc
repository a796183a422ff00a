#include "bench/explain/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::bench {
namespace {

constexpr double kVisibleRiseMs = 20;    // less is what batching and the machine do anyway in a long run
constexpr double kVisibleStepMs = 0.02;  // and in a short one this much a message
constexpr double kLeastRiseMs = 1;
constexpr double kClockDrift = 0.001;       // two clocks may drift apart by less than this part of the time
constexpr double kGrowingQueue = 0.02;      // records left in the queue for each one produced
constexpr double kMoreThanOne = 1.001;      // a record adds one to the queue: more means that lines are missing
constexpr double kNothingServed = 0.999;    // growth at which not one delivery report came back
constexpr double kStalledShare = 0.6;       // of the receive time spent in long waits: delivery comes in bursts
constexpr std::int64_t kLeastBurst = 5;     // messages between two waits, on average
constexpr std::int64_t kEnoughSteps = 100;  // neighbouring messages needed to speak of bursts
constexpr double kTargetMs = 50;            // of the window that is advised
constexpr double kTweetsPerBatch = 1450;    // of about 690 bytes in a batch of 1,000,000 bytes, librdkafka's default

Trend trend_of(const Observations& seen, double rise, double threshold) {
  if (!seen.slope_ms_per_1000) return Trend::kUnknown;
  if (rise >= threshold) return Trend::kGrowing;
  return rise <= -threshold ? Trend::kFalling : Trend::kFlat;
}

// Like the latency: what the line gains must stand out of what the queue goes up and down anyway.
double queue_threshold(const Observations& seen) {
  return std::max(2 * seen.queue_noise, kGrowingQueue * static_cast<double>(seen.queue_steps));
}

bool queue_grows(const Observations& seen) {
  if (seen.queue_full_lines > 0) return true;
  return seen.queue_steps > 0 && seen.queue_rise >= queue_threshold(seen);
}

// Most of the time went into a few waits, and without them the consumer would have kept up. (Where it would not, its
// process was merely interrupted: a busy machine stops everybody.) Where every other step is a wait there are no
// bursts, and where receive times go back they are too rough to tell.
bool comes_in_bursts(const Observations& seen) {
  if (seen.neighbours < kEnoughSteps || seen.covered < 0.1 || seen.stalled < kStalledShare) return false;
  if (seen.stalls * kLeastBurst > seen.neighbours || seen.backwards * 100 > seen.neighbours) return false;
  return seen.arrival_per_s && *seen.service_per_s > (1 - seen.stalled) * *seen.arrival_per_s;
}

double micros_per_message(const Observations& seen) { return 1e6 / seen.service_per_s.value_or(1e6); }

Bottleneck decide(const Observations& seen, Trend trend) {
  if (trend == Trend::kGrowing) {
    // Growing latency wins over a growing queue. Receives that come in bursts although the records were there: the
    // consumer waited, so it is not what is slow.
    return comes_in_bursts(seen) && !queue_grows(seen) ? Bottleneck::kBroker : Bottleneck::kConsumer;
  }
  if (queue_grows(seen)) return Bottleneck::kProducer;
  // One stamp is one batch: nothing of it tells a rate.
  if (trend == Trend::kUnknown || !seen.arrival_per_s) return Bottleneck::kUnknown;
  return Bottleneck::kNone;
}

Factor amount(std::int64_t n, std::string_view what) {
  const auto count = static_cast<double>(n);
  return {1.0 - 2.0 / (count + 2.0), fmt::format("{} {}", with_commas(count), what)};
}

std::vector<Factor> weigh(const Observations& seen, const Diagnosis& d) {
  const Factor messages = amount(seen.samples, "messages");
  switch (d.bottleneck) {
    case Bottleneck::kUnknown: return {{0.0, "too little was seen"}};
    case Bottleneck::kNone:
      return {messages,
              {std::min(1.0, 1.0 - d.rise_ms / d.threshold_ms),  // falling is as far from growth as can be
               fmt::format("a change of {:.1f} ms where {:.1f} would count as growth", d.rise_ms, d.threshold_ms)},
              seen.queue_growth_per_record ? Factor{1.0, "the producer's queue is in sight"}
                                           : Factor{0.8, "no queue lines: the producer is out of sight"}};
    case Bottleneck::kProducer: {
      const Factor steps = seen.queue_steps > 0 ? amount(seen.queue_steps, "steps of the queue")
                                                : amount(seen.queue_full_lines, "queue-full lines");
      const Factor clear = seen.queue_full_lines > 0
                               ? Factor{1.0, "the queue was full"}
                               : Factor{1.0 - queue_threshold(seen) / seen.queue_rise,
                                        fmt::format("the queue rose by {} records where {} would count",
                                                    with_commas(seen.queue_rise), with_commas(queue_threshold(seen)))};
      if (d.trend == Trend::kUnknown) return {steps, clear, {0.7, "no latency lines: the consumer is out of sight"}};
      return {steps, clear, {1.0, "the latency does not grow"}};
    }
    case Bottleneck::kBroker:
    case Bottleneck::kConsumer: break;
  }
  const Factor clear{1.0 - d.threshold_ms / d.rise_ms,
                     fmt::format("a rise of {:.1f} ms where {:.1f} would count", d.rise_ms, d.threshold_ms)};
  if (d.bottleneck == Bottleneck::kBroker) {
    return {messages, clear, {0.8 * seen.stalled, fmt::format("{:.0f} % of the time in waits", 100 * seen.stalled)}};
  }
  if (!seen.arrival_per_s) return {messages, clear, {0.5, "one stamp only: one batch says nothing of a lasting load"}};
  if (comes_in_bursts(seen)) return {messages, clear, {0.6, "receives come in bursts, as behind a slow broker"}};
  return {
      messages,
      clear,
      {0.8 + 0.2 * seen.covered, fmt::format("{:.1f} % of the receive time seen line by line", 100 * seen.covered)}};
}

std::string rates(const Observations& seen) {
  const std::string service = seen.service_per_s ? with_commas(*seen.service_per_s) : "unknown";
  if (!seen.arrival_per_s) return fmt::format("service {}/s, arrival unknown (one stamp)", service);
  return fmt::format("arrival {}/s {} service {}/s", with_commas(*seen.arrival_per_s),
                     *seen.arrival_per_s > seen.service_per_s.value_or(0) ? ">" : "<=", service);
}

std::string say_where(const Observations& seen, const Diagnosis& d) {
  switch (d.bottleneck) {
    case Bottleneck::kConsumer: {
      std::string text = fmt::format(
          "{}: the queue is in front of the consumer's code, in the client's prefetch (librdkafka fetches far ahead)",
          rates(seen));
      if (seen.waiting_at_last_stamp && *seen.waiting_at_last_stamp >= 1) {
        text += fmt::format("; about {} of {} messages still waited there when the last one was appended",
                            with_commas(*seen.waiting_at_last_stamp),
                            with_commas(static_cast<double>(seen.longest_run) + 1));
      }
      text += ". The broker had done its part.";
      if (queue_grows(seen)) {
        text += fmt::format(
            " The producer's queue grows too, before the stamp of the broker. Only where the stamps are the program's "
            "own "
            "(CreateTime) that wait is in the latency: then {}, queue in the producer.",
            rates(seen));
      }
      return text;
    }
    case Bottleneck::kBroker:
      return fmt::format(
          "{}: the queue is in the broker: {:.0f} % of the receive time went into waits for records that were appended "
          "already, "
          "between bursts that the consumer took at once.",
          rates(seen), 100 * seen.stalled);
    case Bottleneck::kProducer:
      return fmt::format("The queue is in the producer: {}, {} at most{}.", queue_growth(seen),
                         with_commas(static_cast<double>(seen.max_queue)),
                         d.trend == Trend::kUnknown ? "" : ", while the latency behind the log's stamp did not grow");
    case Bottleneck::kNone:
      return d.trend == Trend::kFalling
                 ? fmt::format("{}: a backlog is being worked off; nothing holds the records up.", rates(seen))
                 : fmt::format("{}: the latency is flat; nothing holds the records up.", rates(seen));
    case Bottleneck::kUnknown: break;
  }
  return "Not enough lines to tell: latency lines of one run with two different stamps, or queue lines, are needed.";
}

void advise_consumer(const Observations& seen, std::vector<std::string>& out) {
  const double us = micros_per_message(seen);
  out.push_back(fmt::format(
      "Suspect the work for each record first, printing before all else: every message takes {:.1f} us, a bare poll 3 "
      "to 4. "
      "Collect the numbers and print at the end, or every 1,000th; hand real work to another thread or process.",
      us));
  out.push_back(
      fmt::format("If the work must stay, pace the producer by a window: with at most {} records sent and not yet "
                  "consumed the wait stays "
                  "near {:.0f} ms. A guessed fixed rate is not enough: close to {}/s it grows again.",
                  with_commas(std::max(1.0, std::floor(kTargetMs * 1000 / us))), kTargetMs, with_commas(1e6 / us)));
  out.push_back(
      fmt::format("Make batches smaller (linger.ms 1, batch.num.messages in the hundreds): a batch of 1 MB is about {} "
                  "tweets under one "
                  "stamp, and the last of them waits {:.0f} ms at {:.0f} us each whatever the rate.",
                  with_commas(kTweetsPerBatch), kTweetsPerBatch * us / 1000, us));
}

void advise_queue(const Observations& seen, std::vector<std::string>& out) {
  if (seen.queue_growth_per_record) {
    const double growth = *seen.queue_growth_per_record;
    if (growth > kMoreThanOne) {
      out.push_back(fmt::format(
          "The producer's queue changed by {:+.1f} from one queue line to the next, and one record changes it by 1 at "
          "most: "
          "lines are missing (printed every so many records?). By how much it grows a record cannot be told from them; "
          "print each length, or know how many records lie between two lines and divide.",
          growth));
    } else if (growth >= kNothingServed) {
      out.push_back(
          "The producer's queue grew by 1 a record: not one delivery report was served in the lines seen. The loop was "
          "over before "
          "the first acknowledgement came (connect, metadata, auto-creation of the topic): create the topic and "
          "connect first.");
    } else if (growth >= kGrowingQueue) {
      out.push_back(
          fmt::format("The producer's queue grew by {:.2f} a record: acknowledgements come slower than produce() is "
                      "called. A longer queue only "
                      "delays the end; bound it and wait (or let weir's producer block), or send larger batches.",
                      growth));
    } else if (growth > -kGrowingQueue) {
      out.push_back("The producer's queue is balanced (growth 0 a record): acknowledgements keep up with produce().");
    } else {
      out.push_back(fmt::format("The producer's queue shrinks ({:.2f} a record): it is catching up.", growth));
    }
  }
  if (seen.queue_full_lines > 0) {
    out.push_back(
        fmt::format("The queue was full {} times: each flush() then stood still until all of it was acknowledged.",
                    with_commas(static_cast<double>(seen.queue_full_lines))));
  }
  if (seen.queue_lines + seen.queue_full_lines == 0) return;
  out.push_back(
      "poll(0) serves delivery reports that are there already and sends nothing: it does not empty the queue. Call "
      "flush() before "
      "the program ends, or the records still queued are lost.");
}

std::vector<std::string> advise(const Observations& seen, const Diagnosis& d) {
  std::vector<std::string> out;
  if (d.bottleneck == Bottleneck::kConsumer) advise_consumer(seen, out);
  if (d.bottleneck == Bottleneck::kBroker) {
    out.push_back(
        "Look at the broker's disk and at fetch.min.bytes, fetch.wait.max.ms and fetch.queue.backoff.ms of the "
        "consumer: "
        "each can leave appended records unfetched.");
  }
  advise_queue(seen, out);
  if (seen.samples > 0) {
    out.push_back(
        "LogAppendTime is one stamp for a whole batch, set by the broker: it hides the time a record spent in the "
        "producer. For the "
        "whole way put the send time into the record (CreateTime).");
  }
  if (seen.min_ms < 0) {
    out.push_back(fmt::format(
        "The clocks disagree: the smallest latency is {:.1f} ms. Rates and slope hold, the latencies as such do "
        "not; take both times on one machine or synchronise the clocks.",
        seen.min_ms));
  }
  if (d.bottleneck == Bottleneck::kConsumer || d.bottleneck == Bottleneck::kProducer) {
    out.push_back(
        "Byte quotas would not help here: Kafka takes the mean over about ten seconds, so 10 MB pass inside the burst "
        "allowance of any "
        "quota above 1 MB/s.");
  }
  return out;
}

}  // namespace

std::string_view name(Bottleneck b) {
  switch (b) {
    case Bottleneck::kProducer: return "producer";
    case Bottleneck::kBroker: return "broker";
    case Bottleneck::kConsumer: return "consumer";
    case Bottleneck::kNone: return "none";
    case Bottleneck::kUnknown: break;
  }
  return "unknown";
}

std::string queue_growth(const Observations& seen) {
  if (!seen.queue_growth_per_record) return "growth unknown";
  const double growth = *seen.queue_growth_per_record;
  if (growth > kMoreThanOne) return "+" + with_commas(growth) + " from line to line";
  return fmt::format("{:+.2f} a record", growth);
}

std::string with_commas(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > sign + 3;) digits.insert(at -= 3, ",");
  return digits;
}

Diagnosis diagnose(const Observations& seen) {
  Diagnosis d;
  d.rise_ms = seen.slope_ms_per_1000.value_or(0) / 1000.0 * static_cast<double>(seen.longest_run);
  const double visible =
      std::clamp(kVisibleStepMs * static_cast<double>(seen.longest_run), kLeastRiseMs, kVisibleRiseMs);
  d.threshold_ms = std::max({visible, 2 * seen.noise_ms, kClockDrift * std::abs(seen.received_ms)});
  d.trend = trend_of(seen, d.rise_ms, d.threshold_ms);
  d.bottleneck = decide(seen, d.trend);
  d.factors = weigh(seen, d);
  d.confidence = 1;
  for (const Factor& factor : d.factors) d.confidence *= std::clamp(factor.value, 0.0, 1.0);
  d.where = say_where(seen, d);
  d.advice = advise(seen, d);
  return d;
}

}  // namespace weir::bench
