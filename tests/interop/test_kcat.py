# needs:
"""kcat (librdkafka) against the embedded broker."""

import json

from tests.harness import Case, free_port, run, wait_for


class Kcat(Case):
    def setUp(self):
        super().setUp()
        self.process, self.address = self.broker(sets=["num.partitions=2", "group.initial.rebalance.delay.ms=0"])

    def kcat(self, *words, stdin=None, **options):
        return run(["kcat", "-b", self.address, *words], stdin=stdin, **options)[1]

    def consume(self, topic, *words):
        return self.kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", *words)

    def test_produces_to_an_auto_created_topic_and_reads_everything_back(self):
        lines = [f"line {i}" for i in range(5000)]
        self.kcat("-P", "-t", "auto", stdin="\n".join(lines) + "\n")
        self.assertEqual(sorted(self.consume("auto").splitlines()), sorted(lines))
        topics = json.loads(self.kcat("-L", "-J"))["topics"]
        self.assertEqual([len(t["partitions"]) for t in topics if t["topic"] == "auto"], [2])

    def test_every_codec_round_trips(self):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            with self.subTest(codec=codec):
                lines = [f"{codec} {i} " + "x" * 100 for i in range(500)]
                self.kcat("-P", "-t", f"c-{codec}", "-z", codec, stdin="\n".join(lines) + "\n")
                self.assertEqual(sorted(self.consume(f"c-{codec}").splitlines()), sorted(lines))

    def test_keys_headers_and_null_values(self):
        self.kcat("-P", "-t", "kv", "-p", "0", "-K", ":", "-Z", "-H", "a=1", "-H", "a=2", stdin="k1:v1\nk2:\n")
        got = [json.loads(line) for line in self.consume("kv", "-J").splitlines()]
        self.assertEqual([(r["key"], r["payload"], r["headers"]) for r in got],
                         [("k1", "v1", ["a", "1", "a", "2"]), ("k2", None, ["a", "1", "a", "2"])])

    def test_idempotent_producer_and_acks(self):
        for name, acks in (("i", "all"), ("one", "1"), ("zero", "0")):
            words = ["-X", f"acks={acks}"] + (["-X", "enable.idempotence=true"] if acks == "all" else [])
            self.kcat("-P", "-t", f"acks-{name}", *words, stdin="".join(f"{i}\n" for i in range(1000)))
            wait_for(lambda: len(self.consume(f"acks-{name}").splitlines()) == 1000, f"1000 records with acks={acks}")

    def test_offsets_by_timestamp(self):
        self.kcat("-P", "-t", "ts", "-p", "0", stdin="a\nb\nc\n")
        record = json.loads(self.consume("ts", "-J", "-p", "0").splitlines()[0])
        self.assertIn("ts [0] offset 0", self.kcat("-Q", "-t", f"ts:0:{record['ts']}"))
        self.assertIn("ts [0] offset 3", self.kcat("-Q", "-t", "ts:0:-1"))

    def test_a_group_reads_each_record_once_and_goes_on_where_it_ended(self):
        self.kcat("-P", "-t", "g", stdin="".join(f"{i}\n" for i in range(2000)))
        first = self.kcat("-G", "readers", "-q", "-e", "-X", "auto.offset.reset=earliest", "g").split()
        self.kcat("-P", "-t", "g", stdin="".join(f"{i}\n" for i in range(2000, 3000)))
        second = self.kcat("-G", "readers", "-q", "-e", "-X", "auto.offset.reset=earliest", "g").split()
        self.assertEqual((len(first), len(second)), (2000, 1000))
        self.assertEqual(sorted(map(int, first + second)), list(range(3000)))

    def test_log_append_time_on_an_auto_created_topic(self):
        process, self.address = self.broker(data=self.dir / "lat", sets=["log.message.timestamp.type=LogAppendTime"])
        self.kcat("-P", "-t", "lat", stdin="x\n")
        self.assertEqual(json.loads(self.consume("lat", "-J"))["tstype"], "logappend")

    def test_records_survive_kill_9(self):
        data, port = self.dir / "killed", free_port()
        process, self.address = self.broker(data=data, port=port)
        self.kcat("-P", "-t", "k", "-X", "acks=all", stdin="".join(f"{i}\n" for i in range(1000)))
        process.kill()
        process, self.address = self.broker(data=data, port=port)
        self.assertEqual(sorted(map(int, self.consume("k").split())), list(range(1000)))
