"""Mistakes on the command line and in config files: one line on stderr that names the thing, exit 2, nothing started."""

import os
import socket
import subprocess

from tests.harness import WEIR, Case, free_port, last_json, run


class Usage(Case):
    def refused(self, *words, says=()):
        code, out, err = run([WEIR, *words], check=False, seconds=30)
        self.assertEqual((code, out), (2, ""), f"{words}: {err}")
        self.assertEqual(len(err.splitlines()), 1, f"{words}: {err}")
        self.assertTrue(err.startswith("weir: "), f"{words}: {err}")
        for text in says:
            self.assertIn(text, err)

    def test_mistakes_are_one_line_and_exit_2(self):
        for words, says in (
                (["up", "--nonsense"], ["--nonsense", "see weir up --help"]),
                (["quota", "get", "--nonsense"], ["see weir quota get --help"]),
                ([], ["see weir --help"]),
                (["nonsense"], ["nonsense"]),
                (["up", "--data", ""], ["--data", "must not be empty"]),
                (["broker", "--data", ""], ["--data", "must not be empty"]),
                (["broker", "--listen", ""], ["--listen", "must not be empty"]),
                (["broker", "--config", ""], ["--config", "must not be empty"]),
                (["broker", "--config", "/dev/zero"], ["/dev/zero", "larger than 1 MiB"]),
                (["up", "--bootstrap", ""], ["--bootstrap", "must not be empty"]),
                (["up", "--bootstrap", "a b:1"], ["--bootstrap", "HOST:PORT"]),
                (["up", "--listen", "foo"], ["--listen", "HOST:PORT"]),
                (["up", "--http", "foo:80"], ["--http", "127.0.0.1:8080"]),
                (["up", "--sink-rate", "nan"], ["--sink-rate", "from 1 to 10000000"]),
                (["up", "--sink-rate", "inf"], ["--sink-rate", "from 1 to 10000000"]),
                (["up", "--generate", "0"], ["--generate", "from 1 to 10000000"]),
                (["up", "--once", "--generate", "10"], ["--once", "--for"]),
                (["agent", "--once", "--generate", "10"], ["--once", "--for"]),
                (["up", "--for", "0s"], ["--for", "1ms"]),
                (["up", "--for", "99999999h"], ["--for"]),
                (["lag", "--watch", "--interval", "0s"], ["--interval", "100ms"]),
                (["lag", "--timeout", "0s"], ["--timeout", "1ms"]),
                (["agent", "--guard", "here"], ["--guard", "HOST:PORT"]),
                (["guard", "--bootstrap", "localhost"], ["--bootstrap", "'localhost'", "HOST:PORT"]),
                (["lag", "--bootstrap", "127.0.0.1:9092,localhost"], ["--bootstrap", "'localhost'", "HOST:PORT"]),
                (["quota", "get", "--bootstrap", "localhost"], ["--bootstrap", "'localhost'", "HOST:PORT"]),
                (["quota", "set", "--client-id", "a", "producer_byte_rate=much"], ["producer_byte_rate", "much"]),
                (["quota", "set", "--client-id", "a", "producer_byte_rate=-5"], ["producer_byte_rate", "-5"]),
                (["quota", "set", "--client-id", "a", "producer_byte_rate=0"], ["producer_byte_rate", "above 0"]),
                (["quota", "set", "--client-id", "a", "producer_byte_rate=0KiB"], ["producer_byte_rate", "above 0"]),
                (["quota", "set", "--client-id", "a", "producer_byte_rate=1.5"], ["producer_byte_rate", "whole"]),
                (["quota", "set", "--client-id", "a", "request_percentage=inf"], ["request_percentage", "inf"]),
                (["quota", "set", "--client-id", "a", "request_percentage=1MiB"], ["request_percentage", "1MiB"]),
                (["quota", "set", "--client-id", "a", "producer_bytes=1"], ["producer_bytes", "producer_byte_rate"]),
                (["quota", "unset", "--client-id", "a", "producer_bytes"], ["producer_bytes", "producer_byte_rate"])):
            with self.subTest(words=words):
                self.refused(*words, says=says)

    def test_config_mistakes_name_file_and_line_before_anything_starts(self):
        config = self.dir / "w.yaml"
        for text, says in (("agent:\n  line_limit: 1B\n", ["w.yaml:2: line_limit:", "64B", "16MiB"]),
                           ("agent:\n  topic: 'a b'\n", ["w.yaml:2: topic:"]),
                           ("broker:\n  num.partitions: many\n", ["w.yaml:2: num.partitions:"]),
                           ("kafka:\n  bootstrap.servers: ''\n", ["w.yaml:2: bootstrap.servers:"]),
                           ("kafka:\n  bootstrap.servers: localhost\n", ["w.yaml:2: bootstrap.servers:", "HOST:PORT"]),
                           ("producer:\n  max.request.size: 2GiB\n", ["w.yaml:2: max.request.size: 2GiB is not from 1000 to 1000000000"])):
            with self.subTest(text=text):
                config.write_text(text)
                for command in ("up", "agent", "guard"):
                    self.refused(command, "--config", config, says=says)

    def test_secrets_are_not_shown(self):
        config = self.dir / "w.yaml"
        config.write_text("kafka:\n  security.protocol: sasl_plaintext\n  sasl.mechanism: PLAIN\n  sasl.username: me\n  sasl.password: hunter2\n")
        for command in ("up", "agent"):
            code, out, err = run([WEIR, command, "--config", config, "--show-settings"])
            self.assertIn("sasl.password\t(hidden)", out)
            self.assertNotIn("hunter2", out + err)

    def test_both_show_the_memory_that_was_set(self):
        config = self.dir / "w.yaml"
        config.write_text("producer:\n  buffer.memory: 64MiB\n")
        for command in ("up", "agent"):
            _, out, _ = run([WEIR, command, "--config", config, "--show-settings"])
            self.assertIn("producer\tbuffer.memory\t67108864\t", out, command)

    def test_closed_descriptors_are_not_taken_for_something_else(self):
        def sh(line):
            return subprocess.run(["sh", "-c", line], env={**os.environ, "W": str(WEIR)}, capture_output=True, text=True, timeout=20)
        done = sh('"$W" agent --bootstrap 127.0.0.1:1 --once --input - <&-')
        self.assertEqual((done.returncode, done.stderr), (2, "weir: --input -: standard input is closed\n"))
        for line in ('"$W" --help >/dev/full', '"$W" --version >&-'):
            done = sh(line)
            self.assertEqual(done.returncode, 1, line)
            self.assertIn("standard output takes no more", done.stderr)

    def test_version_and_help(self):
        self.assertRegex(run([WEIR, "--version"])[1], r"^weir \d+\.\d+\.\d+\n$")
        self.assertIn("--once", run([WEIR, "up", "--help"])[1])


class Agent(Case):
    """The agent as a process of its own."""

    def agent(self, *words, seconds=60, check=True):
        return run([WEIR, "agent", "--data", self.dir / "data", *words], check=check, seconds=seconds)

    def test_once_against_a_dead_broker_ends_with_the_drain(self):
        log = self.dir / "a.log"
        log.write_text("".join(f"line {i}\n" for i in range(5000)))
        code, out, err = self.agent("--bootstrap", f"127.0.0.1:{free_port()}", "--input", log, "--once", "--drain", "2s", check=False, seconds=30)
        self.assertEqual((code, out), (1, ""))
        last = err.splitlines()[-1]
        self.assertRegex(last, r"^weir: no broker answered within 2s, .* not read; what is in files is read again at the next start$")
        # Nothing was lost: the next run brings all of it.
        _, address = self.broker()
        r = last_json(self.agent("--bootstrap", address, "--input", log, "--once", "--json")[1])
        self.assertEqual((r["read"], r["acked"]), (5000, 5000))

    def test_it_makes_the_topics_as_the_sink_would_and_keeps_what_exists(self):
        _, address = self.broker(sets=["num.partitions=3"])
        log = self.dir / "a.log"
        log.write_text("one\nERROR two\n")
        self.agent("--bootstrap", address, "--input", log, "--once")
        _, out, _ = run(["kcat", "-b", address, "-L"])
        for line in ('topic "logs" with 16 partitions', 'topic "logs_error" with 16 partitions', 'topic "logs_dead_letter" with 8 partitions'):
            self.assertIn(line, out)

    def test_what_is_too_large_is_explained(self):
        config = self.dir / "w.yaml"
        config.write_text("agent:\n  line_limit: 4MiB\n")
        _, address = self.broker()
        log = self.dir / "a.log"
        log.write_text("x" * 2_000_000 + "\nfine\n")
        code, out, err = self.agent("--bootstrap", address, "--config", config, "--input", log, "--once", "--json", check=False)
        self.assertEqual((code, last_json(out)["rejected"]), (3, {"too_large": 1}))
        self.assertIn("weir: rejected 1 record: too_large (limit 1,000,000 bytes; raise max.request.size", err)

    def test_long_lines_are_said_once_a_file_and_counted(self):
        _, address = self.broker()
        log = self.dir / "a.log"
        log.write_text(("y" * 200_000 + "\n") * 20 + "fine\n")
        _, out, err = self.agent("--bootstrap", address, "--input", log, "--once", "--json")
        self.assertEqual(last_json(out)["long_lines"], 20)
        self.assertEqual(err.count("is longer than 160KiB (line_limit)"), 1, err)

    def test_metrics_and_health_of_an_agent(self):
        import urllib.request
        process = self.weir("agent", "--data", self.dir / "data", "--bootstrap", f"127.0.0.1:{free_port()}", "--generate", "10", "--http", "127.0.0.1:0", "--drain", "0s")
        address = process.wait_line("metrics at").split()[-1]
        with urllib.request.urlopen(address, timeout=10) as response:
            self.assertIn("weir_agent_read_total", response.read().decode())
        with self.assertRaises(urllib.error.HTTPError) as health:
            urllib.request.urlopen(address.replace("/metrics", "/healthz"), timeout=10)
        self.assertEqual(health.exception.code, 503)

    def test_inputs_that_are_no_files_are_refused(self):
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(self.dir / "socket"))
            for name in ("pipe", "socket"):
                code, _, err = self.agent("--bootstrap", "127.0.0.1:1", "--input", self.dir / name, check=False, seconds=10)
                self.assertEqual((code, len(err.splitlines())), (2, 1), err)
                self.assertRegex(err, r"^weir: --input: .* is neither a file nor a directory")


class Lag(Case):
    def test_no_groups_is_said(self):
        _, address = self.broker()
        code, out, err = run([WEIR, "lag", "--bootstrap", address])
        self.assertEqual((out, err), ("", f"no groups on {address}\n"))

    def test_unset_says_what_was_not_set(self):
        _, address = self.broker()
        words = [WEIR, "quota", "unset", "--bootstrap", address, "--client-id", "a", "producer_byte_rate"]
        self.assertEqual(run(words)[1], "client-id a: producer_byte_rate was not set\n")
        run([WEIR, "quota", "set", "--bootstrap", address, "--client-id", "a", "producer_byte_rate=1MiB"])
        self.assertEqual(run(words)[1], "client-id a: unset producer_byte_rate\n")
