// Every metric weir exposes, once: name, type, help. docs/metrics.md lists them; a test compares.
//
// The `kafka_` names are those people already have on their dashboards; ours start with `weir_`. Labels are named in
// the help.
#pragma once

#include <span>

#include "weir/metrics.h"

namespace weir::metrics {

// clang-format off
inline constexpr auto kCounter = MetricType::kCounter;
inline constexpr auto kGauge = MetricType::kGauge;
inline constexpr auto kHistogram = MetricType::kHistogram;

// ---- Broker
inline constexpr Metric kBrokerRequestQueueSize{"kafka_broker_request_queue_size", kGauge, "Requests decoded and not answered, long polls excluded (bound: queued.max.requests)"};
inline constexpr Metric kBrokerRequestQueueBytes{"weir_broker_request_queue_bytes", kGauge, "Bytes of requests decoded and not answered (bound: queued.max.request.bytes)"};
inline constexpr Metric kBrokerRequests{"weir_broker_requests_total", kCounter, "Requests answered, by api"};
inline constexpr Metric kBrokerRequestSeconds{"weir_broker_request_seconds", kHistogram, "Time from decoding a request to its answer, by api; throttling and long polls included"};
inline constexpr Metric kBrokerConnections{"weir_broker_connections", kGauge, "Open client connections"};
inline constexpr Metric kBrokerConnectionsRefused{"weir_broker_connections_refused_total", kCounter, "Connections closed for what they sent, by reason"};
inline constexpr Metric kBrokerProducedBytes{"weir_broker_produced_bytes_total", kCounter, "Bytes of record batches appended"};
inline constexpr Metric kBrokerProducedRecords{"weir_broker_produced_records_total", kCounter, "Records appended"};
inline constexpr Metric kBrokerFetchedBytes{"weir_broker_fetched_bytes_total", kCounter, "Bytes of record batches sent to consumers"};
inline constexpr Metric kBrokerThrottleSeconds{"weir_broker_throttle_seconds_total", kCounter, "Seconds of throttling handed out, by client_id and quota (produce, fetch)"};
inline constexpr Metric kBrokerThrottled{"weir_broker_throttled_total", kCounter, "Answers that carried a throttle time, by client_id and quota (produce, fetch)"};
inline constexpr Metric kBrokerFlushSeconds{"weir_broker_flush_seconds", kHistogram, "Time of one fdatasync of the log"};
inline constexpr Metric kBrokerLogErrors{"weir_broker_log_errors_total", kCounter, "Appends or flushes the disk refused, by reason"};

// ---- Producer
inline constexpr Metric kProducerRecordSendRate{"kafka_producer_record_send_rate", kGauge, "Records acknowledged a second since the last time this was read, by client_id"};
inline constexpr Metric kProducerAccepted{"weir_producer_accepted_total", kCounter, "Records accepted by send(), by client_id"};
inline constexpr Metric kProducerAcked{"weir_producer_acked_total", kCounter, "Records acknowledged by the broker, by client_id"};
inline constexpr Metric kProducerRefused{"weir_producer_refused_total", kCounter, "Records send() did not take, by client_id and reason (full, rejected)"};
inline constexpr Metric kProducerRejected{"weir_producer_rejected_total", kCounter, "Accepted records the broker will never take, by client_id"};
inline constexpr Metric kProducerWaiting{"weir_producer_waiting_records", kGauge, "Records accepted and not yet handed to the Kafka client, by client_id and lane"};
inline constexpr Metric kProducerInFlight{"weir_producer_in_flight_records", kGauge, "Records handed to the Kafka client and not acknowledged, by client_id"};
inline constexpr Metric kProducerUnreported{"weir_producer_unreported_records", kGauge, "Records acknowledged whose callback has not ended, by client_id"};
inline constexpr Metric kProducerBufferBytes{"weir_producer_buffer_bytes", kGauge, "Bytes charged to buffer.memory, by client_id"};
inline constexpr Metric kProducerBufferPeakBytes{"weir_producer_buffer_peak_bytes", kGauge, "Most bytes ever charged to buffer.memory, by client_id"};
inline constexpr Metric kProducerBlockedSeconds{"weir_producer_blocked_seconds", kGauge, "Seconds callers waited in send(), by client_id"};
inline constexpr Metric kProducerBrokerThrottleSeconds{"weir_producer_broker_throttle_seconds", kGauge, "Last delay the broker's quota asked for, by client_id"};
inline constexpr Metric kProducerWindowRecords{"weir_producer_window_records", kGauge, "End-to-end window: records that may be admitted and not yet consumed, by client_id"};
inline constexpr Metric kProducerUnconsumedRecords{"weir_producer_unconsumed_records", kGauge, "Records admitted and not yet consumed, by client_id"};
inline constexpr Metric kProducerState{"weir_producer_state", kGauge, "1 for the state the producer is in, by client_id and state (open, blocked, draining, closed)"};
inline constexpr Metric kLimit{"weir_limit", kGauge, "The limit in force, by client_id and reason; absent when nothing limits"};
inline constexpr Metric kLimitedSeconds{"weir_limited_seconds", kGauge, "Seconds during which a limit held records back, by client_id and reason"};

// ---- Agent
inline constexpr Metric kAgentRead{"weir_agent_read_total", kCounter, "Entries read from the inputs"};
inline constexpr Metric kAgentOffered{"weir_agent_offered_total", kCounter, "Entries due by the schedule (generator) or read (files, stdin)"};
inline constexpr Metric kAgentAcked{"weir_agent_acked_total", kCounter, "Entries acknowledged by the broker"};
inline constexpr Metric kAgentShed{"weir_agent_shed_total", kCounter, "Entries dropped by policy, by reason"};
inline constexpr Metric kAgentRejected{"weir_agent_rejected_total", kCounter, "Entries that can never be accepted, by reason"};
inline constexpr Metric kAgentInMemory{"weir_agent_in_memory_records", kGauge, "Entries read and not yet acknowledged, spooled, shed or rejected"};
inline constexpr Metric kAgentReadBytes{"weir_agent_read_bytes_total", kCounter, "Bytes of entries read"};
inline constexpr Metric kAgentUnreadBytes{"weir_agent_unread_bytes", kGauge, "Bytes in followed files behind the read position: the backlog left in the files"};
inline constexpr Metric kAgentFiles{"weir_agent_files", kGauge, "Files followed, rotated ones still being read included"};
inline constexpr Metric kAgentDeletedOpenBytes{"weir_agent_deleted_open_bytes", kGauge, "Bytes of deleted files held open because they have not been read to the end"};
inline constexpr Metric kAgentTruncations{"weir_agent_truncations_total", kCounter, "Files found truncated or replaced in place; read again from their start"};
inline constexpr Metric kAgentLongLines{"weir_agent_long_lines_total", kCounter, "Lines above the line limit, by policy (truncated, skipped)"};
inline constexpr Metric kAgentUnterminatedLines{"weir_agent_unterminated_lines_total", kCounter, "Last lines sent without their line end"};
inline constexpr Metric kAgentBadUtf8Bytes{"weir_agent_bad_utf8_bytes_total", kCounter, "Bytes replaced by U+FFFD because they are not UTF-8"};
inline constexpr Metric kAgentLostBytes{"weir_agent_lost_bytes_total", kCounter, "Bytes known to be gone before they were read, by reason (truncated, given_up)"};
inline constexpr Metric kAgentPausedSeconds{"weir_agent_paused_seconds", kGauge, "Seconds during which the readers stood still behind the closed gate"};

// ---- Consumer and sink
inline constexpr Metric kConsumerFetched{"weir_consumer_fetched_total", kCounter, "Records handed out, by group"};
inline constexpr Metric kConsumerHeldPartitions{"weir_consumer_held_partitions", kGauge, "Partitions held by their watermark, by group"};
inline constexpr Metric kConsumerHolds{"weir_consumer_holds_total", kCounter, "Times a partition reached its high watermark, by group"};
inline constexpr Metric kConsumerUnfinished{"weir_consumer_unfinished_records", kGauge, "Records handed out and not finished, by group"};
inline constexpr Metric kConsumerRebalances{"weir_consumer_rebalances_total", kCounter, "Rebalances, by group"};
inline constexpr Metric kConsumerSkipped{"weir_consumer_skipped_total", kCounter, "Records lost to retention before they were read, by group"};
inline constexpr Metric kSinkStored{"weir_sink_stored_total", kCounter, "Records stored"};
inline constexpr Metric kSinkDuplicates{"weir_sink_duplicates_total", kCounter, "Records found in the store already and dropped"};
inline constexpr Metric kSinkDeadLettered{"weir_sink_dead_lettered_total", kCounter, "Records sent to the dead-letter topic, by reason"};
inline constexpr Metric kSinkInMemory{"weir_sink_in_memory_records", kGauge, "Records fetched and not yet stored"};
inline constexpr Metric kSinkStoreSeconds{"weir_sink_store_seconds", kHistogram, "Time of one store transaction"};
inline constexpr Metric kSinkLatencySeconds{"weir_sink_latency_seconds", kHistogram, "Time from read at the agent to stored, by topic"};

// ---- Guard
inline constexpr Metric kConsumerLag{"kafka_consumer_lag", kGauge, "Records between the committed offset and the end of the log, by group, topic, partition, state of the group, and assigned (false: members read it no more)"};
inline constexpr Metric kConsumerLagSeconds{"weir_consumer_lag_seconds", kGauge, "Time since the committed offset was the end of the log, by group, topic and partition"};
inline constexpr Metric kConsumerLost{"weir_consumer_lost_records", kGauge, "Records below the start of the log that the group had still to read: retention took them, by group, topic and partition"};
inline constexpr Metric kGroupLag{"weir_group_lag_records", kGauge, "Sum of the lag of a group's partitions, by group"};
inline constexpr Metric kGroupLagSeconds{"weir_group_lag_seconds", kGauge, "Largest time since a committed offset was the end of its log, by group"};
inline constexpr Metric kGroupMembers{"weir_group_members", kGauge, "Members of a group, by group and state"};
inline constexpr Metric kGroupStale{"weir_group_stale", kGauge, "1 while a group cannot be asked: its lag is from an earlier measurement, by group"};
inline constexpr Metric kUncommittedPartitions{"weir_uncommitted_partitions", kGauge, "Partitions with records whose lag is not known since they have no committed offset, by group"};
inline constexpr Metric kLagClamped{"weir_lag_clamped_total", kCounter, "Samples in which a commit was beyond the end read with it; shown as 0"};
inline constexpr Metric kGuardDecisions{"weir_guard_decisions_total", kCounter, "Decisions taken, by law"};
inline constexpr Metric kGuardDirectives{"weir_guard_directives", kGauge, "Directives in force"};
inline constexpr Metric kGuardMeasureAgeSeconds{"weir_guard_measure_age_seconds", kGauge, "Age of the last complete measurement"};
inline constexpr Metric kGuardMeasureFailures{"weir_guard_measure_failures_total", kCounter, "Measurements that failed, by reason"};
// clang-format on

/// All of the above, sorted by name.
std::span<const Metric> all_metrics();

}  // namespace weir::metrics
