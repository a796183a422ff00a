#include "broker/broker.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/core.h"
#include "broker/server.h"
#include "runtime/file.h"
#include "runtime/process.h"

namespace weir::broker {

Broker::Broker() = default;

Broker::~Broker() {
  if (auto done = stop(); !done) log::error("broker: {}", done.error().message);
}

Result<std::unique_ptr<Broker>> Broker::start(BrokerConfig config, Registry* registry) {
  if (config.listeners.empty()) {
    if (auto done = config.finish(); !done) return tl::unexpected(done.error());
  }
  for (const std::string& notice : config.notices()) log::warn("{}", notice);
  runtime::raise_file_limit();
  std::unique_ptr<Broker> broker(new Broker);
  auto core = Core::open(runtime::posix_file_system(), std::move(config), system_clock().now());
  if (!core) return tl::unexpected(core.error());
  broker->core_ = std::move(*core);
  if (registry == nullptr) {
    broker->own_registry_ = std::make_unique<Registry>();
    registry = broker->own_registry_.get();
  }
  broker->server_ = std::make_unique<Server>(*broker->core_, *registry);
  auto bound = broker->server_->start();
  if (!bound) {
    broker->server_.reset();
    return tl::unexpected(bound.error());
  }
  broker->address_ = {bound->host, bound->port};
  broker->cluster_id_ = broker->core_->cluster_id();
  return broker;
}

Result<void> Broker::stop() {
  if (!server_) return {};
  server_->stop();
  server_.reset();
  return core_->close(system_clock().now());
}

std::string Broker::bootstrap() const { return runtime::Address{address_.host, address_.port}.text(); }

}  // namespace weir::broker
