#include "broker/stranger.h"

#include <string_view>

namespace weir::broker {

std::string guess_stranger(ByteView bytes) {
  const std::string_view text = as_text(bytes);
  for (const std::string_view verb :
       {"GET ", "POST ", "PUT ", "HEAD ", "OPTIONS ", "DELETE ", "PATCH ", "CONNECT ", "PRI * HTTP"}) {
    if (text.substr(0, 4) == verb.substr(0, 4)) {
      return "it is an HTTP request; this port speaks the Kafka protocol, point a Kafka client at it";
    }
  }
  // A TLS record: handshake (0x16) or alert (0x15), version 3.x.
  if (bytes.size() >= 2 && (bytes[0] == std::byte{0x16} || bytes[0] == std::byte{0x15}) &&
      bytes[1] == std::byte{0x03}) {
    return "it is TLS; this port is plain text, set security.protocol=PLAINTEXT on the client";
  }
  if (text.substr(0, 4) == "SSH-") return "it is an SSH client; this port speaks the Kafka protocol";
  return {};
}

}  // namespace weir::broker
