// The coordinator's view of the broker: the core.
#include "broker/core.h"
#include "broker/group/coordinator.h"

namespace weir::broker {
namespace {

class CoreHost final : public GroupHost {
 public:
  explicit CoreHost(Core& core) : core_(core) {}
  bool commit(GroupDecision decision) override { return core_.commit(std::move(decision)); }
  void reply(RequestId request, Response response) override { core_.reply(request, std::move(response)); }
  void wait(RequestId request) override { core_.long_poll(request); }
  PartitionId partition_of(std::string_view group) const override { return core_.group_partition(group); }
  bool has(const TopicPartition& partition) const override { return core_.topics().has(partition); }

 private:
  Core& core_;
};

}  // namespace

GroupCoordinator::GroupCoordinator(Core& core)
    : config_(core.config()), owned_host_(std::make_unique<CoreHost>(core)), host_(*owned_host_) {}

}  // namespace weir::broker
