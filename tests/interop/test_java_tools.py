# needs: kafka
"""Apache Kafka's own command-line tools against the embedded broker. Their exit codes are no verdict: output is checked."""

from tests.harness import Case, kafka_tool, java, run, wait_for

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


class JavaTools(Case):
    def setUp(self):
        super().setUp()
        self.process, self.address = self.broker(sets=["group.initial.rebalance.delay.ms=0"])

    def tool(self, main_class, *words, **options):
        code, out, err = kafka_tool(main_class, self.address, *words, **options)
        return out + err

    def test_topics_create_list_describe_delete(self):
        create = ["--create", "--topic", "T", "--partitions", "3", "--replication-factor", "1"]
        self.assertIn("Created topic T", self.tool(TOPICS, *create, "--config", "retention.ms=3600000"))
        self.assertIn("already exists", self.tool(TOPICS, *create, check=False))
        self.assertIn("T", self.tool(TOPICS, "--list").split())
        described = self.tool(TOPICS, "--describe", "--topic", "T")
        self.assertRegex(described, r"PartitionCount: 3\s+ReplicationFactor: 1\s+Configs: .*retention.ms=3600000")
        self.assertEqual(described.count("Leader: 1"), 3)
        self.tool(TOPICS, "--delete", "--topic", "T")
        wait_for(lambda: "T" not in self.tool(TOPICS, "--list").split(), "topic T is gone")

    def test_replication_factor_three_is_refused_and_the_fix_is_named(self):
        out = self.tool(TOPICS, "--create", "--topic", "R", "--partitions", "1", "--replication-factor", "3", check=False)
        self.assertIn("InvalidReplicationFactorException", out)
        self.assertIn("weir.replication.factor.clamp", out)

    def test_replication_factor_three_is_taken_as_one_when_clamped(self):
        _, self.address = self.broker(data=self.dir / "clamped", sets=["weir.replication.factor.clamp=true"])
        out = self.tool(TOPICS, "--create", "--topic", "logs", "--partitions", "16", "--replication-factor", "3")
        self.assertIn("Created topic logs", out)
        self.assertRegex(self.tool(TOPICS, "--describe", "--topic", "logs"), r"PartitionCount: 16\s+ReplicationFactor: 1")

    def test_client_quotas_set_read_and_unset(self):
        entity = ["--entity-type", "clients", "--entity-default"]
        rates = "producer_byte_rate=10485760,consumer_byte_rate=5242880"
        self.assertIn("Completed updating", self.tool(CONFIGS, "--alter", *entity, "--add-config", rates))
        described = self.tool(CONFIGS, "--describe", *entity)
        self.assertIn("producer_byte_rate=1.048576E7", described)
        self.assertIn("consumer_byte_rate=5242880.0", described)
        self.tool(CONFIGS, "--alter", *entity, "--delete-config", "producer_byte_rate,consumer_byte_rate")
        self.assertNotIn("producer_byte_rate", self.tool(CONFIGS, "--describe", *entity))

    def test_topic_configs_set_and_read(self):
        self.tool(TOPICS, "--create", "--topic", "C", "--partitions", "1")
        entity = ["--entity-type", "topics", "--entity-name", "C"]
        self.tool(CONFIGS, "--alter", *entity, "--add-config", "max.message.bytes=2000000,message.timestamp.type=LogAppendTime")
        described = self.tool(CONFIGS, "--describe", *entity)
        self.assertIn("max.message.bytes=2000000", described)
        self.assertIn("message.timestamp.type=LogAppendTime", described)
        self.assertIn("num.io.threads", self.tool(CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"))

    def test_console_producer_consumer_and_group_description(self):
        lines = [f"k{i}:value {i}" for i in range(200)]
        self.tool(PRODUCER, "--topic", "con", "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
                  stdin="\n".join(lines) + "\n")
        out = self.tool(CONSUMER, "--topic", "con", "--from-beginning", "--max-messages", "200", "--timeout-ms", "30000", "--group", "gc")
        self.assertEqual(sorted(l for l in out.splitlines() if l.startswith("value")), sorted(f"value {i}" for i in range(200)))
        described = self.tool(GROUPS, "--describe", "--group", "gc")
        row = [l.split() for l in described.splitlines() if l.startswith("gc ")]
        self.assertEqual([(r[1], r[3], r[4], r[5]) for r in row], [("con", "200", "200", "0")], described)
        self.assertIn("gc", self.tool(GROUPS, "--list").split())

    def test_producer_performance_with_every_codec(self):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            with self.subTest(codec=codec):
                out = self.tool("org.apache.kafka.tools.ProducerPerformance", "--topic", "perf", "--num-records", "2000", "--record-size",
                                "500", "--throughput", "-1", "--command-property", f"compression.type={codec}")
                self.assertIn("2000 records sent", out)

    def test_kafka_reads_our_segments(self):
        run(["kcat", "-b", self.address, "-P", "-t", "dump", "-z", "lz4"], stdin="".join(f"{i}\n" for i in range(1000)))
        self.process.stop()
        segment = self.dir / "broker" / "dump-0" / "00000000000000000000.log"
        _, out, err = run(java("org.apache.kafka.tools.DumpLogSegments", "--files", segment, "--deep-iteration"))
        self.assertEqual(out.count("| offset: "), 1000, (out + err)[-500:])
        self.assertNotIn("isvalid: false", out)
