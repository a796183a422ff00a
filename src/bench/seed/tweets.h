// Records like the ones the question sends: a JSON object per tweet, 14,485 of them about 10 MB. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::bench {

inline constexpr std::size_t kTweets = 14485;

/// The same seed gives the same records on every machine.
std::vector<std::string> make_tweets(std::size_t count = kTweets, std::uint64_t seed = 1);

}  // namespace weir::bench
