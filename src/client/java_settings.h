// Settings of the Java client that have no like in librdkafka 2.0.2: accepted where they ask for what is so anyway,
// else refused with a reason of their own. A name that Kafka has must never look like one that was misspelt.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/types.h"

namespace weir::client {

enum class ClientKind : std::uint8_t { kProducer = 1, kConsumer = 2, kBoth = 3 };

/// Empty: not such a setting of this client. The refusal does not show the value, which may be a secret.
std::optional<Result<void>> answer_java_setting(ClientKind client, std::string_view name, std::string_view value);

}  // namespace weir::client
