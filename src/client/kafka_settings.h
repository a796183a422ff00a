// Kafka settings as people have them, in Java or librdkafka spelling, turned into ours: translated, or refused with the
// reason.
//
// Sizes may be written `64MiB`, times `500ms`; plain numbers mean what they mean in Kafka (bytes, milliseconds). A name
// that is not understood is refused: a setting that is silently ignored is worse than an error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/consumer.h"
#include "weir/producer.h"
#include "weir/types.h"

namespace weir::client {

/// Names and values in the order of the file; `default.topic.config.NAME` is the same as NAME.
using KafkaSettings = std::vector<std::pair<std::string, std::string>>;

/// `base` with `settings` on top. The error names the setting and the reason; nothing is half applied.
Result<ProducerSettings> producer_settings(const KafkaSettings& settings, ProducerSettings base = {});
Result<ConsumerSettings> consumer_settings(const KafkaSettings& settings, ConsumerSettings base = {});

/// What a single value does not show: that the settings fit together. The error begins with the name of one.
Result<void> check(const ProducerSettings& settings);
Result<void> check(const ConsumerSettings& settings);

/// True when the value of this setting (librdkafka spelling) may hold a password, a key or a token: whoever shows
/// settings shows "(hidden)" in its place.
bool is_secret(std::string_view name);

}  // namespace weir::client
