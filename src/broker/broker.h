// The embedded broker as one object: `weir broker` runs it, `weir up` and tests embed it.
#pragma once

#include <memory>
#include <string>

#include "broker/broker_config.h"
#include "weir/metrics.h"
#include "weir/types.h"

namespace weir::broker {

class Core;
class Server;

/// Serves on threads of its own. start() and stop() from one thread, the rest from any.
class Broker {
 public:
  /// Opens the data directory (locked), recovers it and listens. finish() is called if it was not. `registry`, when
  /// given, must outlive the broker. Errors name the directory or the address and what to do.
  static Result<std::unique_ptr<Broker>> start(BrokerConfig config, Registry* registry = nullptr);
  /// stop() if that was not called; a failure is logged.
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Answers what can be answered, makes everything durable and ends. Again: does nothing.
  Result<void> stop();

  /// As bound, the port the system chose included.
  const HostPort& address() const { return address_; }
  /// "127.0.0.1:9092", for bootstrap.servers.
  std::string bootstrap() const;
  const std::string& cluster_id() const { return cluster_id_; }

 private:
  Broker();
  std::unique_ptr<Registry> own_registry_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Server> server_;
  HostPort address_;
  std::string cluster_id_;
};

}  // namespace weir::broker
