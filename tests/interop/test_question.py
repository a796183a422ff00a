# needs: kafka python
"""The benchmark question's own two programs, on both brokers; `weir explain` reads what they print."""

from tests.harness import PYTHON, ROOT, WEIR, Case, run


class Question(Case):
    def ask(self, address):
        return run(["sh", ROOT / "tests/question/run.sh", address], seconds=300, env={"PYTHON": PYTHON, "WEIR_BINARY": WEIR})

    def test_on_the_embedded_broker(self):
        self.ask(self.broker()[1])

    def test_on_apache_kafka(self):
        self.ask(self.kafka()[1])
