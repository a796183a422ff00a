"""The article's settings, pasted into a config file, are what the client library is given."""

from tests.harness import ROOT, WEIR, Case, run


class Article(Case):
    def settings(self, config):
        _, out, _ = run([WEIR, "up", "--config", config, "--show-settings"])
        return {tuple(line.split("\t")[:2]): line.split("\t")[2] for line in out.splitlines()}

    def test_every_value_is_in_force(self):
        got = self.settings(ROOT / "examples" / "article.yaml")
        expected = {
            ("producer", "buffer.memory"): "67108864", ("producer", "max.block.ms"): "60000", ("producer", "batch.size"): "65536",
            ("producer", "linger.ms"): "10", ("producer", "max.in.flight.requests.per.connection"): "5",
            ("producer", "compression.type"): "snappy", ("producer", "acks"): "all", ("producer", "retries"): "3",
            ("producer", "retry.backoff.ms"): "100",
            ("consumer", "max.poll.records"): "100", ("consumer", "fetch.min.bytes"): "1024", ("consumer", "fetch.max.wait.ms"): "500",
            ("consumer", "session.timeout.ms"): "10000", ("consumer", "enable.auto.commit"): "false",
        }
        self.assertEqual({name: got.get(name) for name in expected}, expected, got)

    def test_the_pipeline_runs_with_them(self):
        (self.dir / "a.log").write_text("".join(f"{'ERROR' if i % 7 == 0 else 'INFO'} {i}\n" for i in range(1000)))
        from tests.harness import free_port
        run([WEIR, "up", "--config", ROOT / "examples" / "article.yaml", "--data", self.dir / "data", "--listen", f"127.0.0.1:{free_port()}",
             "--http", f"127.0.0.1:{free_port()}", "--input", self.dir / "a.log", "--once"])
        self.assertEqual(self.rows(self.dir / "data" / "logs.db"), [(1000,)])
        _, address = self.broker(data=self.dir / "data" / "broker")
        _, out, _ = run([WEIR, "lag", "--bootstrap", address, "--group", "weir-sink", "--json"])
        self.assertEqual(len(out.splitlines()), 1)

    def test_a_refused_setting_names_file_line_and_reason(self):
        config = self.dir / "bad.yaml"
        for text, expected in (("producer:\n  batch.sise: 1\n", "bad.yaml:2"), ("consumer:\n  enable.auto.commit: true\n", "enable.auto.commit"),
                               ("limits:\n  pause: soon\n", "bad.yaml:2"), ("nonsense:\n  a: 1\n", "nonsense")):
            with self.subTest(text=text):
                config.write_text(text)
                code, out, err = run([WEIR, "up", "--config", config, "--once"], check=False)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(expected, err)
                self.assertEqual(len(err.splitlines()), 1, err)
