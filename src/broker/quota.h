// Client quotas: who may send and fetch how many bytes a second, and how long to hold back who went over.
//
// A quota belongs to an entity: a user, a client-id, both together, or the default of either (Kafka's KIP-55). The most
// specific one that exists is in force: user and client-id, user, client-id, then the broker's quota.producer.default
// and quota.consumer.default. Between two of the same kind a named one goes before the default one. All connections of
// the entity share one sum. Every client is the user ANONYMOUS while there is no authentication.
//
// A change is in force for the next request. The law is TrailingRate's (broker/quota_rate.h). A message-rate quota
// would be one more Kind with its own key and the same rates.
//
// Thread rule: owned by the core loop. Pure: no clock, no I/O.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "broker/broker_config.h"
#include "broker/metadata_record.h"
#include "broker/quota_rate.h"
#include "broker/request.h"
#include "weir/types.h"

namespace weir::broker {

/// {type, name} pairs sorted by type; type "client-id", "ip" or "user", no name for the default entity of the type.
using QuotaEntity = decltype(QuotaRecord::entity);
/// Kafka's name of a quota ("producer_byte_rate") -> value, above zero.
using QuotaValues = std::map<std::string, double, std::less<>>;

class Quotas {
 public:
  /// `config` must outlive this.
  explicit Quotas(const BrokerConfig& config);

  /// The only thing that changes a quota: while loading at start, and when a decision is carried out.
  void replay(const QuotaRecord& record);

  /// Counts `bytes` of a Produce request and says how long not to read its connection after the reply (zero: within
  /// quota). The delay has no upper bound.
  Duration produced(Now now, const Request& request, Bytes bytes);
  /// The same for a Fetch answer about to be sent. When it is not zero, send an answer without records instead and call
  /// unfetched() with the same bytes.
  Duration fetched(Now now, const Request& request, Bytes bytes);
  void unfetched(Now now, const Request& request, Bytes bytes);
  /// The most one Fetch answer may carry under the client's quota, as Kafka has it: what the quota allows in all but
  /// one of the windows. The largest value when there is no quota.
  Bytes max_fetch_bytes(const Request& request) const;

  /// The quota in force for the client, in bytes per second; nothing when there is none.
  std::optional<double> limit(std::string_view key, std::string_view user, std::string_view client_id) const;

  const std::map<QuotaEntity, QuotaValues>& all() const { return quotas_; }
  /// Entities whose rate is remembered now.
  std::size_t tracked() const { return rates_[0].size() + rates_[1].size(); }

 private:
  enum Kind : std::size_t { kProduce, kFetch };
  /// Whose rate is measured: the user, the client-id or both, as the quota in force says. Empty: not part of it.
  using Owner = std::pair<std::string, std::string>;
  struct InForce {
    Owner owner;
    std::optional<double> limit;
  };
  InForce in_force(Kind kind, std::string_view user, std::string_view client_id) const;
  std::optional<double> broker_default(Kind kind) const;
  std::optional<double> value_of(const QuotaEntity& entity, std::string_view key) const;
  Duration count(Kind kind, Now now, const Request& request, double bytes);
  void forget_idle(MonoTime now);

  const BrokerConfig& config_;
  std::map<QuotaEntity, QuotaValues> quotas_;
  std::array<std::size_t, 2> quotas_of_kind_{};
  std::array<std::map<Owner, TrailingRate>, 2> rates_;
  MonoTime next_sweep_{};
};

}  // namespace weir::broker
