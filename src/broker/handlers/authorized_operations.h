// What everybody may do while there is no authorizer, as the bits Kafka's clients read (AclOperation codes).
#pragma once

#include <cstdint>

namespace weir::broker {

constexpr std::int32_t operations(std::initializer_list<int> codes) {
  std::int32_t bits = 0;
  for (const int code : codes) bits |= 1 << code;
  return bits;
}

enum AclOperation {
  kRead = 3,
  kWrite,
  kCreate,
  kDelete,
  kAlter,
  kDescribe,
  kClusterAction,
  kDescribeConfigs,
  kAlterConfigs,
  kIdempotentWrite
};

inline constexpr std::int32_t kTopicOperations =
    operations({kRead, kWrite, kCreate, kDelete, kAlter, kDescribe, kDescribeConfigs, kAlterConfigs});
inline constexpr std::int32_t kClusterOperations =
    operations({kCreate, kAlter, kDescribe, kClusterAction, kDescribeConfigs, kAlterConfigs, kIdempotentWrite});

}  // namespace weir::broker
