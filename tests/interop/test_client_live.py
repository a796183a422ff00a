# needs: kafka
"""The guarded producer and consumer over the real client library, on both brokers."""

from tests.harness import ROOT, Case, run

PROGRAM = ROOT / "build" / "dev" / "tests" / "client_live" / "client_live_test"


class ClientLive(Case):
    def live(self, address):
        _, out, _ = run([PROGRAM], seconds=300, env={"WEIR_TEST_BOOTSTRAP": address})
        self.assertIn("[  PASSED  ]", out)
        self.assertNotIn("SKIPPED", out)

    def test_on_the_embedded_broker(self):
        self.live(self.broker(sets=["group.initial.rebalance.delay.ms=0"])[1])

    def test_on_apache_kafka(self):
        self.live(self.kafka()[1])
