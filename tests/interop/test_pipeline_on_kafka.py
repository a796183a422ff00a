# needs: kafka
"""The same pipeline cases, unchanged, on Apache Kafka."""

import json

from tests.e2e.pipeline_cases import PipelineCases
from tests.harness import WEIR, Case, kafka_tool, run


class PipelineOnKafka(PipelineCases, Case):
    def setUp(self):
        super().setUp()
        self.process, self.address = self.kafka()

    def bootstrap(self):
        return ["--bootstrap", self.address]

    def test_lag_and_quota_commands_work(self):
        (self.dir / "a.log").write_text("".join(f"{i}\n" for i in range(100)))
        self.up("--input", self.dir / "a.log", "--once")
        _, out, _ = run([WEIR, "lag", "--bootstrap", self.address, "--group", "weir-sink", "--json"])
        self.assertEqual(len(out.splitlines()), 1)
        self.assertIn("weir-sink", json.dumps(json.loads(out)))
        run([WEIR, "quota", "set", "--bootstrap", self.address, "--client-id", "app", "producer_byte_rate=1048576"])
        _, described, _ = kafka_tool("kafka.admin.ConfigCommand", self.address, "--describe", "--entity-type", "clients", "--entity-name", "app")
        self.assertIn("producer_byte_rate=1048576", described)
        self.assertIn("producer_byte_rate", run([WEIR, "quota", "get", "--bootstrap", self.address])[1])
        run([WEIR, "quota", "unset", "--bootstrap", self.address, "--client-id", "app", "producer_byte_rate"])
        self.assertNotIn("producer_byte_rate", run([WEIR, "quota", "get", "--bootstrap", self.address])[1])
