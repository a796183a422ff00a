#include <fmt/format.h>

#include "weir/flow.h"

namespace weir {

std::string_view to_string(Lane lane) {
  switch (lane) {
    case Lane::kHigh: return "high";
    case Lane::kNormal: return "normal";
    case Lane::kLow: return "low";
  }
  return "?";
}

std::string_view to_string(SignalKind kind) {
  switch (kind) {
    case SignalKind::kNone: return "none";
    case SignalKind::kLagRecords: return "lag";
    case SignalKind::kLagTime: return "lag time";
    case SignalKind::kUnconsumed: return "unconsumed";
    case SignalKind::kAckDelay: return "ack delay";
    case SignalKind::kMemory: return "memory";
    case SignalKind::kMessageRate: return "message rate";
    case SignalKind::kByteRate: return "byte rate";
    case SignalKind::kThrottle: return "throttle";
    case SignalKind::kOperator: return "operator";
  }
  return "?";
}

std::string_view unit_of(SignalKind kind) {
  switch (kind) {
    case SignalKind::kNone:
    case SignalKind::kOperator: return "";
    case SignalKind::kLagRecords:
    case SignalKind::kUnconsumed: return "records";
    case SignalKind::kLagTime: return "s";
    case SignalKind::kAckDelay:
    case SignalKind::kThrottle: return "ms";
    case SignalKind::kMemory: return "bytes";
    case SignalKind::kMessageRate: return "records/s";
    case SignalKind::kByteRate: return "bytes/s";
  }
  return "";
}

std::string_view to_string(LimitedBy limit) {
  switch (limit) {
    case LimitedBy::kNothing: return "nothing";
    case LimitedBy::kPause: return "pause";
    case LimitedBy::kDirective: return "directive";
    case LimitedBy::kMessageRate: return "message_rate";
    case LimitedBy::kByteRate: return "byte_rate";
    case LimitedBy::kMemory: return "memory";
    case LimitedBy::kAckDelay: return "ack_delay";
    case LimitedBy::kConsumer: return "consumer";
  }
  return "?";
}

bool Scope::covers(std::string_view client, std::string_view record_topic,
                   std::optional<PartitionId> record_partition) const {
  if (!client_id.empty() && client_id != client) return false;
  if (!topic.empty() && topic != record_topic) return false;
  return !partition || !record_partition || *partition == *record_partition;
}

std::string to_string(const Scope& scope) {
  std::string text;
  if (!scope.client_id.empty()) text = "client " + scope.client_id;
  if (!scope.topic.empty()) {
    if (!text.empty()) text += ", ";
    text += "topic " + scope.topic;
    if (scope.partition) text += fmt::format(", partition {}", scope.partition->value);
  }
  return text.empty() ? "everything" : text;
}

}  // namespace weir
