# needs: kafka
"""What ends a sink, and how it says so: `weir sink` as a process of its own, on both brokers."""

import signal

from tests.harness import WEIR, Case, kafka_tool, run, wait_for

TOPICS = "org.apache.kafka.tools.TopicCommand"


class SinkCases:
    """Mixed into a Case; `setUp` sets `address`."""

    def topics(self, *words):
        kafka_tool(TOPICS, self.address, *words)

    def make_topics(self):
        for name in ("logs", "logs_error"):
            self.topics("--create", "--topic", name, "--partitions", "1", "--replication-factor", "1")

    def sink(self, data="sink", *words):
        child = self.weir("sink", "--bootstrap", self.address, "--data", self.dir / data, *words)
        child.wait_line("ready")
        return child

    def send(self, name, count):
        log = self.dir / f"{name}.log"
        log.write_text("".join(f"INFO {name} {i}\n" for i in range(count)))
        run([WEIR, "agent", "--bootstrap", self.address, "--data", self.dir / name, "--input", log, "--once"])

    def stored(self, data="sink"):
        try:
            return self.rows(self.dir / data / "logs.db")[0][0]
        except Exception:
            return 0

    def ends_with(self, child, code, *texts):
        """It ends by itself, with the reason on one line, said once."""
        self.assertEqual(child.wait(60), code, child.tail())
        saying = [line for line in child.err if all(text in line for text in texts)]
        self.assertEqual(len(saying), 1, child.err)
        self.assertTrue(saying[0].startswith("weir: "), saying)
        return saying[0]

    def test_a_topic_made_anew_stops_it_and_nothing_of_it_is_stored(self):
        self.make_topics()
        running = self.sink()
        self.send("old", 100)
        wait_for(lambda: self.stored() == 100, "100 rows are stored")
        self.topics("--delete", "--topic", "logs")
        self.topics("--create", "--topic", "logs", "--partitions", "1", "--replication-factor", "1")
        self.ends_with(running, 1, "topic logs with id", "deleted and made anew", "another --data")
        self.send("new", 150)  # the old position is in the middle of the new log
        self.ends_with(self.sink(), 1, "topic logs with id", "deleted and made anew", "another --data")
        self.assertEqual(self.stored(), 100)
        fresh = self.sink("fresh")
        wait_for(lambda: self.stored("fresh") == 150, "the new topic is stored by a sink of its own")
        self.assertEqual(fresh.stop(), 0, fresh.tail())

    def test_a_second_sink_of_the_same_name_takes_over_and_the_first_says_why_it_ends(self):
        self.make_topics()
        first = self.sink("first")
        self.send("a", 10)
        wait_for(lambda: self.stored("first") == 10, "the first sink stores")
        second = self.sink("second")
        self.ends_with(first, 1, "group.instance.id weir-sink", "give each its own")
        wait_for(lambda: self.stored("second") == 10, "the second reads from the start: its store is empty")
        self.send("b", 10)
        wait_for(lambda: self.stored("second") == 20, "the second goes on")
        self.assertEqual(second.stop(), 0, second.tail())

    def test_a_session_timeout_the_broker_does_not_take_is_said_with_its_range(self):
        config = self.dir / "weir.yaml"
        config.write_text("consumer:\n  session.timeout.ms: 2s\n")
        child = self.sink("sink", "--config", config)
        self.ends_with(child, 1, "session.timeout.ms", "6000 to 1800000", "2000")

    def test_three_signals_end_it_at_once(self):
        self.make_topics()
        child = self.sink("sink", "--sink-rate", "1")
        self.send("a", 50)
        wait_for(lambda: self.stored() > 0, "it stores, slowly")
        child.child.send_signal(signal.SIGINT)
        child.wait_line("twice more ends at once")

        def ended():
            if child.running():
                child.child.send_signal(signal.SIGINT)  # two at the same moment would count as one
            return not child.running()
        wait_for(ended, "further signals end it", 5, every=0.2)
        self.assertEqual(child.wait(), 130, child.tail())


class SinkOnTheEmbeddedBroker(SinkCases, Case):
    def setUp(self):
        super().setUp()
        self.process, self.address = self.broker(sets=["group.initial.rebalance.delay.ms=0"])


class SinkOnApacheKafka(SinkCases, Case):
    def setUp(self):
        super().setUp()
        self.process, self.address = self.kafka()
