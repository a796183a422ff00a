"""Starts the real programs for tests: weir, Apache Kafka, clients. Everything listens on loopback and ends with the test.

Tests wait for conditions with `wait_for`; none of them sleeps and hopes. A program is ended by its pid, never by its name.
"""

import glob
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = os.environ.get("WEIR_BINARY", str(ROOT / "build" / "release" / "weir"))
PEERS = ROOT / "build" / "peers"
PYTHON = str(PEERS / "python" / "bin" / "python")
LONG = os.environ.get("WEIR_LONG", "0") == "1"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, what, seconds=60.0, every=0.05):
    """Calls `condition` until it returns something true; returns that. Fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen within {seconds:.0f} s: {what}")
        time.sleep(every)


class Process:
    """A child whose output is collected line by line. `stop` asks with SIGTERM, `kill` does not ask."""

    def __init__(self, argv, stdin=None, env=None, cwd=None):
        self.argv = [str(a) for a in argv]
        self.out, self.err = [], []
        self.child = subprocess.Popen(
            self.argv, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})}, cwd=cwd, text=True, errors="replace")
        self._readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((self.child.stdout, self.out), (self.child.stderr, self.err))]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    @property
    def pid(self):
        return self.child.pid

    def running(self):
        return self.child.poll() is None

    def wait_line(self, text, seconds=60.0):
        """The first line of either stream that contains `text`."""
        def look():
            for line in self.out + self.err:
                if text in line:
                    return line
            if not self.running():
                self._join()
                for line in self.out + self.err:
                    if text in line:
                        return line
                raise AssertionError(f"{self.argv[:3]} ended with {self.child.returncode} before printing {text!r}: {self.tail()}")
            return None
        return wait_for(look, f"{self.argv[:3]} prints {text!r}; so far: {self.tail()}", seconds)

    def tail(self):
        return (self.out[-5:], self.err[-8:])

    def _join(self):
        for reader in self._readers:
            reader.join(10)
        self.child.stdout.close()
        self.child.stderr.close()

    def wait(self, seconds=60.0):
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.argv[:3]} still runs after {seconds:.0f} s: {self.tail()}") from None
        self._join()
        return self.child.returncode

    def stop(self, seconds=60.0):
        if self.running():
            self.child.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self):
        if self.running():
            self.child.kill()
        return self.wait()


def run(argv, stdin=None, seconds=120.0, check=True, env=None):
    """Runs a program to its end; returns (code, stdout, stderr)."""
    done = subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, text=True, errors="replace",
                          timeout=seconds, env={**os.environ, **(env or {})})
    if check and done.returncode != 0:
        raise AssertionError(f"{argv[:4]} exited with {done.returncode}: {done.stdout[-800:]} {done.stderr[-1500:]}")
    return done.returncode, done.stdout, done.stderr


class Case(unittest.TestCase):
    """A test with a directory of its own; what it started is ended when it ends."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="weir-test-"))
        self._children = []

    def tearDown(self):
        for child in reversed(self._children):
            child.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, argv, **options):
        child = Process(argv, **options)
        self._children.append(child)
        return child

    def weir(self, *words, **options):
        return self.start([WEIR, *words], **options)

    def broker(self, data=None, port=None, sets=()):
        """An embedded broker; returns (process, address)."""
        port = port or free_port()
        words = ["broker", "--data", data or self.dir / "broker", "--listen", f"127.0.0.1:{port}"]
        for name_value in sets:
            words += ["--set", name_value]
        child = self.weir(*words)
        child.wait_line("ready")
        return child, f"127.0.0.1:{port}"

    def kafka(self, sets=()):
        """Apache Kafka; returns (process, address)."""
        port, controller = free_port(), free_port()
        home = self.dir / f"kafka-{port}"
        home.mkdir()
        config = home / "server.properties"
        lines = {
            "process.roles": "broker,controller", "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER", "log.dirs": str(home / "logs"),
            "offsets.topic.replication.factor": "1", "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1", "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1", "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4", "num.partitions": "1",
        }
        lines.update(pair.split("=", 1) for pair in sets)
        config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        run(java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", config, "--standalone"))
        child = self.start(java("kafka.Kafka", config, heap="512m"), cwd=home)
        child.wait_line("Kafka Server started", 120)
        return child, f"127.0.0.1:{port}"

    def rows(self, database, query="select count(*) from logs"):
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
            return connection.execute(query).fetchall()


def java(main_class, *words, heap="256m"):
    return ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
            "-cp", f"{PEERS}/kafka/*", main_class, *words]


def kafka_tool(main_class, address, *words, stdin=None, seconds=120.0, check=True):
    """One of Kafka's command-line tools against `address`; returns (code, stdout, stderr)."""
    return run(java(main_class, "--bootstrap-server", address, *words), stdin=stdin, seconds=seconds, check=check)


def last_json(text):
    """The last line of `text` that is JSON, parsed."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise AssertionError(f"no JSON line in: {text[-800:]}")
