// Who is it that does not speak Kafka? A guess from the first bytes, for one clear line in the log.
#pragma once

#include <string>

#include "base/bytes.h"

namespace weir::broker {

/// "an HTTP request: ...", "a TLS handshake: ..."; empty when the bytes look like nothing we know.
std::string guess_stranger(ByteView first_bytes);

}  // namespace weir::broker
