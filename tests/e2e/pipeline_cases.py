"""What `weir up` must do on any broker; test_pipeline runs it on the embedded one, interop/test_pipeline_on_kafka on Apache Kafka."""

import json
import os
import signal
import subprocess

from tests.harness import LONG, WEIR, Case, free_port, last_json, run


class PipelineCases:
    """Mixed into a Case. `bootstrap()` gives the words that choose the broker."""

    def bootstrap(self):
        return []

    def up(self, *words, stdin=None, seconds=180, check=True):
        """Runs `weir up --json` to its end; returns (code, its JSON, stderr)."""
        argv = [WEIR, "up", "--data", self.dir / "data", "--http", f"127.0.0.1:{free_port()}", "--json", *self.bootstrap(), *words]
        code, out, err = run(argv, stdin=stdin, seconds=seconds, check=check)
        self.assertEqual(len(out.splitlines()), 1, "--json prints exactly one line: " + out)
        return code, json.loads(out), err

    def assert_conserved(self, r):
        total = sum(r[k] for k in ("stored", "duplicates", "dead_lettered", "lag", "agent_in_memory", "spooled"))
        total += sum(r["shed"].values()) + sum(r["rejected"].values())
        self.assertEqual(r["read"], total, f"read must equal the sum of where records are: {r}")
        self.assertEqual(r["behind"], r["offered"] - r["read"], r)

    def database(self):
        return self.dir / "data" / "logs.db"

    def test_files_reach_the_store_and_a_second_start_goes_on_where_the_first_ended(self):
        log = self.dir / "app.log"
        lines = [f"2026-11-30 10:00:00 [{'ERROR' if i % 10 == 0 else 'INFO'}] request {i}" for i in range(3000)]
        log.write_text("\n".join(lines) + "\n")
        code, r, _ = self.up("--input", log, "--once")
        self.assertEqual(code, 0)
        self.assert_conserved(r)
        self.assertEqual((r["offered"], r["read"], r["stored"], r["lag"]), (3000, 3000, 3000, 0))
        self.assertEqual(self.rows(self.database(), "select topic, level, count(*) from logs group by 1, 2 order by 1"),
                         [("logs", "INFO", 2700), ("logs_error", "ERROR", 300)])
        with log.open("a") as f:
            f.write("".join(f"more WARNING {i}\n" for i in range(500)))
        code, r, _ = self.up("--input", log, "--once")
        self.assertEqual((code, r["read"], r["stored"], r["duplicates"], r["lag"]), (0, 500, 500, 0, 0))
        self.assertEqual(self.rows(self.database()), [(3500,)])
        self.assertEqual(self.rows(self.database(), "select count(*) from logs where level='WARN' and message like 'more WARNING %'"), [(500,)])

    def test_lines_are_wrapped_and_log_entries_pass_unchanged(self):
        entry = {"server_id": "server7", "level": "FATAL", "message": "disk gone", "timestamp": 1700000000123}
        lines = [b"plain line", b"WARNING: low on space", b"an ERRORS word is no level", b"[CRITICAL] stop", b"bad \xff\xfe bytes", b"",
                 json.dumps(entry).encode(), "日志 ERR 中文".encode()]
        (self.dir / "mixed.log").write_bytes(b"\n".join(lines) + b"\n")
        _, r, _ = self.up("--input", self.dir / "mixed.log", "--once")
        self.assert_conserved(r)
        rows = self.rows(self.database(), "select level, message, topic, server_id from logs order by source_pos")
        host = os.uname().nodename
        self.assertEqual(rows, [
            ("INFO", "plain line", "logs", host), ("WARN", "WARNING: low on space", "logs", host),
            ("INFO", "an ERRORS word is no level", "logs", host), ("CRITICAL", "[CRITICAL] stop", "logs_error", host),
            ("INFO", "bad \ufffd\ufffd bytes", "logs", host), ("INFO", "", "logs", host),
            ("FATAL", "disk gone", "logs_error", "server7"), ("ERROR", "日志 ERR 中文", "logs_error", host)])
        self.assertEqual(self.rows(self.database(), "select timestamp from logs where server_id='server7'"), [(1700000000123,)])

    def test_stdin_ends_at_eof(self):
        _, r, _ = self.up("--input", "-", stdin="".join(f"line {i}\n" for i in range(2000)))
        self.assert_conserved(r)
        self.assertEqual((r["read"], r["stored"]), (2000, 2000))

    def test_a_slow_store_holds_the_generator_back_and_nothing_is_lost(self):
        seconds = 30 if LONG else 6
        code, r, _ = self.up("--generate", "5000", "--sink-rate", "1000", "--for", f"{seconds}s", "--drain", "2s")
        self.assertEqual(code, 0)
        self.assert_conserved(r)
        self.assertGreater(r["behind"] + r["lag"], 0, "the store is slower than what is offered, so something had to wait")
        self.assertEqual((r["shed"], r["rejected"], r["dead_lettered"]), ({}, {}, 0))
        self.assertGreater(self.rows(self.database(), "select count(*) from logs where topic='logs_error'")[0][0], 0)
        # The rest is durable: the next run, with a fast store and no input of its own, brings it in.
        (self.dir / "empty.log").write_text("")
        code, again, _ = self.up("--input", self.dir / "empty.log", "--once", "--drain", "60s")
        self.assertEqual((code, again["lag"]), (0, 0))
        self.assertEqual(self.rows(self.database()), [(r["read"],)])
        self.assertEqual(self.rows(self.database(), "select count(*) from (select 1 from logs group by source, source_pos having count(*) > 1)"), [(0,)])

    def test_interrupt_drains_and_exits_0(self):
        argv = [WEIR, "up", "--data", self.dir / "data", "--http", f"127.0.0.1:{free_port()}", "--json", "--generate", "500", *self.bootstrap()]
        process = self.start(argv)
        process.wait_line("ready")
        process.child.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0, process.tail())
        r = last_json("\n".join(process.out))
        self.assert_conserved(r)
        self.assertEqual(r["lag"], 0)

    def test_another_cluster_is_refused_by_the_store(self):
        (self.dir / "a.log").write_text("one\n")
        self.up("--input", self.dir / "a.log", "--once")
        _, address = self.broker(data=self.dir / "other")
        argv = [WEIR, "up", "--data", self.dir / "data", "--http", f"127.0.0.1:{free_port()}", "--input", self.dir / "a.log", "--once", "--bootstrap", address]
        code, _, err = run(argv, check=False, seconds=60)
        self.assertEqual(code, 1, err)
        self.assertIn("--data", err)
        self.assertIn("cluster", err)


def page(address):
    """What the guard's page and API answer, by curl-like means of the standard library."""
    import urllib.request
    with urllib.request.urlopen(address, timeout=10) as response:
        return response.status, response.read().decode()


__all__ = ["PipelineCases", "page", "Case", "subprocess"]
