#include "client/java_settings.h"

#include <algorithm>
#include <string>

namespace weir::client {
namespace {

using enum ClientKind;

struct Answer {
  std::string_view name;  ///< one that ends in '*' stands for all that begin so
  ClientKind client;
  std::string_view reason;
  /// Values that ask for what is so anyway, in lower case, each followed by '|'.
  std::string_view fine = "";
};

constexpr std::string_view kMetrics = "of the Java client's metrics; weir has its own: see docs/metrics.md";
constexpr std::string_view kJavaClass = "names a Java class, and weir runs none";
constexpr std::string_view kPem =
    "a Java-only form: use ssl.ca.location, ssl.certificate.location, ssl.key.location (PEM)";
constexpr std::string_view kSasl = "a Java-only form: use sasl.username, sasl.password";
constexpr std::string_view kTls = "librdkafka has no such setting: OpenSSL's own configuration says";
constexpr std::string_view kLogin = "librdkafka has no such setting: it logs in and renews by itself";
constexpr std::string_view kBearer =
    "librdkafka has no such setting; it has sasl.oauthbearer.config, and with sasl.oauthbearer.method=oidc "
    "sasl.oauthbearer.client.id, .client.secret, .scope, .extensions and .token.endpoint.url";
constexpr std::string_view kBootstrap = "librdkafka has no such setting: it asks the bootstrap.servers again by itself";
constexpr std::string_view kSpread =
    "librdkafka has no such setting: records without a key are spread, whatever the partitions can take";
constexpr std::string_view kTransactions = "transactions are not supported by weir's producer";
constexpr std::string_view kShare = "weir reads in consumer groups, not in share groups";

// The first that fits answers.
constexpr Answer kAnswers[] = {
    {"client.dns.lookup", kBoth, "librdkafka 2.0.2 has use_all_dns_ips only", "use_all_dns_ips|"},
    {"config.providers", kBoth, kJavaClass},
    {"interceptor.classes", kBoth, kJavaClass},
    {"security.providers", kBoth, "names Java classes: librdkafka has ssl.providers, OpenSSL's"},
    {"metric.reporters", kBoth, kMetrics},
    {"auto.include.jmx.reporter", kBoth, kMetrics, "false|"},
    {"metrics.num.samples", kBoth, kMetrics},
    {"metrics.recording.level", kBoth, kMetrics},
    {"metrics.sample.window.ms", kBoth, kMetrics},
    {"enable.metrics.push", kBoth, "librdkafka 2.0.2 pushes no metrics: only false is possible", "false|"},
    {"metadata.recovery.strategy", kBoth, kBootstrap},
    {"metadata.recovery.rebootstrap.trigger.ms", kBoth, kBootstrap},
    {"retry.backoff.max.ms", kBoth, "librdkafka 2.0.2 has no such setting: each wait is retry.backoff.ms"},
    {"reconnect.backoff.jitter.ms", kBoth, "librdkafka no longer uses it"},
    {"socket.connection.setup.timeout.max.ms", kBoth,
     "librdkafka has no such setting: each try has socket.connection.setup.timeout.ms"},
    {"internal.*", kBoth, "internal to the Java client"},

    {"sasl.jaas.config", kBoth, kSasl},
    {"sasl.client.callback.handler.class", kBoth, kJavaClass},
    {"sasl.login.callback.handler.class", kBoth, kJavaClass},
    {"sasl.login.class", kBoth, kJavaClass},
    {"sasl.login.*", kBoth, kLogin},
    {"sasl.kerberos.ticket.renew.*", kBoth,
     "librdkafka has no such setting: it renews every sasl.kerberos.min.time.before.relogin"},
    {"sasl.oauthbearer.assertion.*", kBoth, kBearer},
    {"sasl.oauthbearer.client.credentials.*", kBoth, kBearer},
    {"sasl.oauthbearer.clock.skew.seconds", kBoth, kBearer},
    {"sasl.oauthbearer.expected.*", kBoth, kBearer},
    {"sasl.oauthbearer.header.urlencode", kBoth, kBearer, "false|"},
    {"sasl.oauthbearer.jwks.*", kBoth, kBearer},
    {"sasl.oauthbearer.jwt.*", kBoth, kBearer},
    {"sasl.oauthbearer.scope.claim.name", kBoth, kBearer},
    {"sasl.oauthbearer.sub.claim.name", kBoth, kBearer},

    {"ssl.truststore.*", kBoth, kPem},
    {"ssl.keystore.type", kBoth, "librdkafka reads PKCS12 only; for PEM use ssl.certificate.location, ssl.key.location",
     "pkcs12|"},
    {"ssl.keystore.key", kBoth, "a Java-only form: use ssl.key.pem or ssl.key.location"},
    {"ssl.keystore.certificate.chain", kBoth, "a Java-only form: use ssl.certificate.pem or ssl.certificate.location"},
    {"ssl.engine.factory.class", kBoth, kJavaClass},
    {"ssl.enabled.protocols", kBoth, kTls},
    {"ssl.keymanager.algorithm", kBoth, kTls},
    {"ssl.protocol", kBoth, kTls},
    {"ssl.provider", kBoth, kTls},
    {"ssl.secure.random.implementation", kBoth, kTls},
    {"ssl.trustmanager.algorithm", kBoth, kTls},

    {"metadata.max.idle.ms", kProducer, "librdkafka has no such setting: it forgets a topic after metadata.max.age.ms"},
    {"partitioner.adaptive.partitioning.enable", kProducer, kSpread, "false|"},
    {"partitioner.availability.timeout.ms", kProducer, kSpread, "0|"},
    {"partitioner.ignore.keys", kProducer, "a record with a key goes where its key says; the agent has key: none",
     "false|"},
    {"transaction.timeout.ms", kProducer, kTransactions},
    {"transaction.two.phase.commit.enable", kProducer, kTransactions, "false|"},
    {"transactional.id", kProducer, kTransactions},

    {"default.api.timeout.ms", kConsumer, "librdkafka has no such setting: weir's calls have deadlines of their own"},
    // Topics are subscribed to by name, never by a pattern.
    {"exclude.internal.topics", kConsumer, "neither true nor false", "true|false|"},
    {"group.remote.assignor", kConsumer, "of group.protocol=consumer, which librdkafka 2.0.2 does not speak"},
    {"share.acknowledgement.mode", kConsumer, kShare},
    {"share.acquire.mode", kConsumer, kShare},
};

bool fits(const Answer& answer, std::string_view name) {
  if (!answer.name.ends_with('*')) return answer.name == name;
  return name.starts_with(answer.name.substr(0, answer.name.size() - 1));
}

bool is_fine(const Answer& answer, std::string_view value) {
  if (value.empty()) return true;  // asks for nothing
  std::string word(value);
  std::ranges::transform(word, word.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  word += '|';
  for (std::string_view rest = answer.fine; !rest.empty(); rest.remove_prefix(rest.find('|') + 1))
    if (rest.starts_with(word)) return true;
  return false;
}

}  // namespace

std::optional<Result<void>> answer_java_setting(ClientKind client, std::string_view name, std::string_view value) {
  for (const Answer& answer : kAnswers) {
    if (!fits(answer, name) || (answer.client != kBoth && answer.client != client)) continue;
    if (is_fine(answer, value)) return Result<void>{};
    return Result<void>(fail(ErrorKind::kInvalid, std::string(answer.reason)));
  }
  return std::nullopt;
}

}  // namespace weir::client
