#include "bench/seed/tweets.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <random>
#include <string_view>

namespace weir::bench {
namespace {

constexpr std::array<std::string_view, 48> kWords = {
    "morning", "coffee",  "train",  "late",   "again",  "match",   "tonight", "great",  "weather", "rain",
    "city",    "people",  "music",  "new",    "album",  "listen",  "photo",   "sunset", "beach",   "work",
    "monday",  "team",    "wins",   "season", "news",   "today",   "project", "launch", "code",    "queue",
    "stream",  "record",  "broker", "delay",  "thanks", "friends", "dinner",  "recipe", "garden",  "spring",
    "winter",  "holiday", "ticket", "flight", "home",   "movie",   "book",    "read"};
constexpr std::array<std::string_view, 8> kLanguages = {"en", "de", "fr", "es", "pt", "ja", "zh", "it"};
constexpr std::array<std::string_view, 4> kSources = {"Web", "Android", "iPhone", "TweetDeck"};

// The distributions of <random> differ between libraries, the generator does not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : generator_(seed) {}
  std::uint64_t below(std::uint64_t n) { return generator_() % n; }
  template <typename Choices>
  std::string_view pick(const Choices& choices) {
    return choices[below(choices.size())];
  }
  std::string words(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) text += ' ';
      text += pick(kWords);
    }
    return text;
  }

 private:
  std::mt19937_64 generator_;
};

std::string make_tweet(std::uint64_t number, Dice& dice) {
  // One throw a statement: the order in which arguments are evaluated is the compiler's choice.
  std::string out;
  const auto put = [&out](std::string_view name, const auto& value) {
    fmt::format_to(std::back_inserter(out), R"("{}":{},)", name, value);
  };
  const auto quote = [](const auto& value) { return fmt::format(R"("{}")", value); };
  const std::uint64_t id = 1'383'000'000'000'000'000ULL + number * 4'194'304 + dice.below(4'194'304);
  const std::uint64_t user = 10'000'000 + dice.below(900'000'000);

  out = '{';
  put("created_at", fmt::format(R"("Sat Apr 17 18:{:02}:{:02} +0000 2021")", number / 60 % 60, number % 60));
  put("id", id);
  put("id_str", quote(id));
  put("text", quote(dice.words(10 + dice.below(21))));
  put("source", quote(dice.pick(kSources)));
  put("truncated", false);
  put("in_reply_to_status_id", "null");
  out += R"("user":{)";
  put("id", user);
  put("id_str", quote(user));
  put("name", quote(dice.words(2)));
  put("screen_name", quote(fmt::format("{}{}", dice.pick(kWords), user % 10'000)));
  put("location", quote(dice.pick(kWords)));
  put("followers_count", dice.below(100'000));
  put("friends_count", dice.below(5'000));
  put("statuses_count", dice.below(200'000));
  put("verified", dice.below(50) == 0);
  out.back() = '}';
  out += ',';
  put("entities", fmt::format(R"({{"hashtags":[{{"text":"{}"}}],"urls":[],"user_mentions":[]}})", dice.pick(kWords)));
  put("retweet_count", dice.below(1'000));
  put("favorite_count", dice.below(5'000));
  put("favorited", false);
  put("retweeted", false);
  put("lang", quote(dice.pick(kLanguages)));
  put("timestamp_ms", quote(1'618'685'061'270 + number));
  out.back() = '}';
  return out;
}

}  // namespace

std::vector<std::string> make_tweets(std::size_t count, std::uint64_t seed) {
  Dice dice(seed);
  std::vector<std::string> tweets;
  tweets.reserve(count);
  for (std::size_t i = 0; i < count; ++i) tweets.push_back(make_tweet(i, dice));
  return tweets;
}

}  // namespace weir::bench
