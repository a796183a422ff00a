# needs: python
"""confluent-kafka-python (a current librdkafka) against the embedded broker."""

from tests.harness import PYTHON, ROOT, Case, last_json, run


class PythonClient(Case):
    def test_idempotent_produce_group_consume_commit_describe(self):
        _, address = self.broker(sets=["group.initial.rebalance.delay.ms=0"])
        _, out, _ = run([PYTHON, ROOT / "tests/interop/python_client.py", address, "py", 20000], seconds=180)
        self.assertEqual(last_json(out), {"left": 0, "failed": [], "unique": 20000, "seen": 20000, "committed": 20000,
                                          "state": "STABLE", "members": 1})
