// The admin client's connections and what it has learned of the cluster, shared by the files that implement its calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/admin.h"
#include "client/admin_link.h"

namespace weir::client {

/// Owned by the thread that owns the Admin, except interrupt().
class Admin::State {
 public:
  explicit State(AdminSettings settings) : settings(std::move(settings)) {}

  MonoTime deadline() const { return system_clock().now().mono + settings.timeout; }
  void interrupt();
  /// Waits a little before trying again. False when the deadline would pass, or after interrupt().
  bool pause_before_retry(MonoTime deadline);

  /// Any broker: one that is connected already, else the first of the bootstrap list that answers.
  Result<AdminLink*> any(MonoTime deadline);
  /// A broker by its id, as the last metadata had it.
  Result<AdminLink*> broker(int node, MonoTime deadline);
  /// It did not answer a moment ago: asking again within the same call would cost the others their time.
  bool is_unreachable(int node) const;
  /// Brokers, cluster id and leaders of the named topics (none: of none; all: of all).
  enum class Which { kNamed, kAll };
  Result<ClusterDescription> refresh(Which which, const std::vector<std::string>& names,
                                     std::vector<TopicDescription>* topics, MonoTime deadline);
  /// Asks the controller as the newest metadata has it: old clusters change things only there.
  template <typename Request>
  Result<std::pair<typename Request::Response, std::string>> ask_controller(const Request& request, MonoTime deadline) {
    if (auto known = refresh(Which::kNamed, {}, nullptr, deadline); !known) return tl::unexpected(known.error());
    auto link = brokers.contains(controller) ? broker(controller, deadline) : any(deadline);
    if (!link) return tl::unexpected(link.error());
    auto response = (*link)->ask(request, deadline);
    if (!response) return tl::unexpected(response.error());
    return std::pair(std::move(*response), (*link)->address());
  }

  /// The coordinators of groups, from memory or asked for; a group without one carries the reason.
  std::map<std::string, Result<int>> find_coordinators(const std::vector<std::string>& groups, MonoTime deadline);

  /// Asks every group's coordinator, all of them at once, as many groups in a request as the version allows, and asks
  /// again what could not be answered for the moment. `make(version, groups)` builds a request, `read(response, groups,
  /// address, out)` puts each group's answer into `out`.
  template <typename T, typename Request>
  std::map<std::string, Result<T>> ask_groups(
      const std::vector<std::string>& groups, int cap, int batch_since,
      const std::function<Request(int version, std::span<const std::string>)>& make,
      const std::function<void(const typename Request::Response&, std::span<const std::string>, const std::string&,
                               std::map<std::string, Result<T>>&)>& read);

  AdminSettings settings;
  std::map<int, runtime::Address> brokers;
  int controller = -1;
  std::map<std::string, int> coordinators;
  std::map<TopicPartition, int> leaders;

 private:
  struct Unreachable {
    Error why;
    MonoTime until;
  };
  Result<AdminLink*> connect(const runtime::Address& address, MonoTime deadline);

  std::map<runtime::Address, std::unique_ptr<AdminLink>> links_;
  /// Brokers that did not answer when last connected to: not waited for again at once, others need the time.
  std::map<runtime::Address, Unreachable> unreachable_;
  runtime::Address preferred_;  ///< The broker that answered last when any would do.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> interrupted_ = false;
};

template <typename T, typename Request>
std::map<std::string, Result<T>> Admin::State::ask_groups(
    const std::vector<std::string>& groups, int cap, int batch_since,
    const std::function<Request(int, std::span<const std::string>)>& make,
    const std::function<void(const typename Request::Response&, std::span<const std::string>, const std::string&,
                             std::map<std::string, Result<T>>&)>& read) {
  constexpr std::size_t kBatch = 500;
  struct Job {
    AdminLink* link;
    int version;
    std::span<const std::string> groups;
  };
  const MonoTime until = deadline();
  std::map<std::string, Result<T>> out;
  std::vector<std::string> todo = groups;
  while (true) {
    std::map<int, std::vector<std::string>> by_node;
    for (auto& [group, node] : find_coordinators(todo, until)) {
      if (node) {
        by_node[*node].push_back(group);
      } else {
        out.insert_or_assign(group, tl::unexpected(node.error()));
      }
    }
    const auto give_up = [&](std::span<const std::string> names, const Error& why) {
      for (const auto& name : names) out.insert_or_assign(name, tl::unexpected(why));
    };
    std::vector<Job> jobs;
    for (const auto& [node, names] : by_node) {
      std::span<const std::string> rest(names);
      auto link = broker(node, until);
      auto version = link ? (*link)->template version<Request>(cap) : Result<int>(tl::unexpected(link.error()));
      while (!rest.empty()) {
        const std::size_t size = !version || *version < batch_since ? 1 : std::min(kBatch, rest.size());
        if (!version) {
          give_up(rest, version.error());
          break;
        }
        const auto batch = rest.subspan(0, size);
        rest = rest.subspan(size);
        if (auto sent = (*link)->send(make(*version, batch), *version, until); !sent) {
          give_up(batch, sent.error());
        } else {
          jobs.push_back({*link, *version, batch});
        }
      }
    }
    for (const Job& job : jobs) {
      auto response = job.link->template receive<Request>(job.version, until);
      if (!response) {
        give_up(job.groups, response.error());
        continue;
      }
      give_up(job.groups, {ErrorKind::kInvalid, job.link->address() + " left this group out of its answer"});
      read(*response, job.groups, job.link->address(), out);
    }
    // A coordinator that moved or is loading may answer in a moment.
    std::vector<std::string> again;
    for (const auto& group : todo) {
      const auto found = out.find(group);
      if (found == out.end() || found->second || found->second.error().kind != ErrorKind::kUnavailable) continue;
      const auto node = coordinators.find(group);
      if (node == coordinators.end() || !is_unreachable(node->second)) again.push_back(group);
      coordinators.erase(group);
    }
    todo = std::move(again);
    if (todo.empty() || !pause_before_retry(until)) return out;
  }
}

}  // namespace weir::client
