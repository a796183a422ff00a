"""`weir up` on the embedded broker, as users run it."""

import json
import unittest

from tests.e2e.pipeline_cases import PipelineCases, page
from tests.harness import WEIR, Case, free_port, run, wait_for


class PipelineOnEmbeddedBroker(PipelineCases, Case):
    def bootstrap(self):
        return ["--listen", f"127.0.0.1:{free_port()}"]

    def test_page_api_and_metrics_answer_while_it_runs(self):
        http = free_port()
        process = self.weir("up", "--data", self.dir / "data", "--http", f"127.0.0.1:{http}", "--json", "--generate", "200", *self.bootstrap())
        process.wait_line("ready")
        base = f"http://127.0.0.1:{http}"
        self.assertIn("<html", page(base + "/")[1].lower())
        wait_for(lambda: json.loads(page(base + "/api/status")[1])["pipeline"]["stored"] > 0, "the status shows stored records")
        wait_for(lambda: "kafka_consumer_lag{" in page(base + "/metrics")[1], "metrics carry the lag")
        wait_for(lambda: "weir-sink" in page(base + "/api/lag")[1], "the lag of weir-sink is measured")
        self.assertEqual(process.stop(), 0)

    def test_a_taken_port_gives_the_next_free_one_and_says_so(self):
        import socket
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            (self.dir / "a.log").write_text("x\n")
            _, out, err = run([WEIR, "up", "--data", self.dir / "data", "--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{free_port()}",
                               "--input", self.dir / "a.log", "--once", "--json"])
            self.assertIn(f"{port + 1}", err)

    def test_the_data_directory_is_locked(self):
        process = self.weir("up", "--data", self.dir / "data", "--http", f"127.0.0.1:{free_port()}", "--json", "--generate", "10", *self.bootstrap())
        process.wait_line("ready")
        code, _, err = run([WEIR, "up", "--data", self.dir / "data", "--http", f"127.0.0.1:{free_port()}", "--generate", "10", *self.bootstrap()], check=False)
        self.assertEqual(code, 1)
        self.assertIn("data", err)
        self.assertEqual(process.stop(), 0)

    def test_bad_words_exit_2_and_name_the_fault(self):
        for words, text in ((["up", "--generate", "x"], "--generate"), (["up", "--config", "/nonexistent.yaml"], "/nonexistent.yaml"),
                            (["nothing"], "nothing"), (["up", "--for", "soon"], "soon")):
            with self.subTest(words=words):
                code, out, err = run([WEIR, *words], check=False)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(text, err)


if __name__ == "__main__":
    unittest.main()
