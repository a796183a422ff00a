// InitProducerId: a producer id and epoch for idempotence and transactions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "protocol/api_key.h"
#include "protocol/error_code.h"
#include "protocol/field_table.h"

namespace weir::protocol {

struct InitProducerIdResponse;

struct InitProducerIdRequest {
  static constexpr ApiKey kApiKey = ApiKey::kInitProducerId;
  using Response = InitProducerIdResponse;

  std::optional<std::string> transactional_id;
  std::int32_t transaction_timeout_ms = 0;
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = -1;
  bool enable2_pc = false;
  bool keep_prepared_txn = false;

  WEIR_MESSAGE(InitProducerIdRequest,
               valid(0, 6).flexible(2),
               WEIR_FIELD(transactional_id, since(0).nullable(0)),
               WEIR_FIELD(transaction_timeout_ms, since(0)),
               WEIR_FIELD(producer_id, since(3)),
               WEIR_FIELD(producer_epoch, since(3)),
               WEIR_FIELD(enable2_pc, since(6)),
               WEIR_FIELD(keep_prepared_txn, since(6)))
};

struct InitProducerIdResponse {
  static constexpr ApiKey kApiKey = ApiKey::kInitProducerId;

  std::int32_t throttle_time_ms = 0;
  ErrorCode error_code = ErrorCode::kNone;
  std::int64_t producer_id = -1;
  std::int16_t producer_epoch = 0;
  std::int64_t ongoing_txn_producer_id = -1;
  std::int16_t ongoing_txn_producer_epoch = -1;

  WEIR_MESSAGE(InitProducerIdResponse,
               valid(0, 6).flexible(2),
               WEIR_FIELD(throttle_time_ms, since(0)),
               WEIR_FIELD(error_code, since(0)),
               WEIR_FIELD(producer_id, since(0)),
               WEIR_FIELD(producer_epoch, since(0)),
               WEIR_FIELD(ongoing_txn_producer_id, since(6)),
               WEIR_FIELD(ongoing_txn_producer_epoch, since(6)))
};

}  // namespace weir::protocol
