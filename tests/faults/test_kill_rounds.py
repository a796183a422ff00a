"""Agent, sink and broker as separate processes, each killed at random moments under load: nothing lost, no row twice."""

import os
import random
import threading
import time

from tests.harness import LONG, Case, free_port, wait_for


class Writer(threading.Thread):
    """Appends numbered lines to a file at a steady pace and rotates it by rename now and then."""

    def __init__(self, path, per_second):
        super().__init__(daemon=True)
        self.path, self.per_second, self.count, self.rotations = path, per_second, 0, 0
        self.ended = threading.Event()

    def run(self):
        file = open(self.path, "w")
        while not self.ended.wait(0.05):
            for _ in range(self.per_second // 20):
                file.write(f"{'ERROR' if self.count % 50 == 0 else 'INFO'} line {self.count}\n")
                self.count += 1
            file.flush()
            if self.count // 20000 > self.rotations:
                self.rotations += 1
                file.close()
                os.rename(self.path, f"{self.path}.{self.rotations}")
                file = open(self.path, "w")
        file.close()

    def stop(self):
        self.ended.set()
        self.join()


class KillRounds(Case):
    def test_nothing_is_lost_and_no_row_is_there_twice(self):
        rounds = 50 if LONG else 5
        seed = int(os.environ.get("WEIR_SEED", time.time()))
        print(f"seed {seed}, {rounds} rounds")
        rng = random.Random(seed)
        port = free_port()
        log = self.dir / "logs" / "app.log"
        log.parent.mkdir()
        address = f"127.0.0.1:{port}"
        commands = {
            "broker": ["broker", "--data", self.dir / "broker", "--listen", address, "--set", "group.initial.rebalance.delay.ms=0"],
            "agent": ["agent", "--bootstrap", address, "--data", self.dir / "agent", "--input", log],
            "sink": ["sink", "--bootstrap", address, "--data", self.dir / "sink"],
        }
        running = {}

        def launch(name):
            running[name] = self.weir(*commands[name])
            running[name].wait_line("ready")

        writer = Writer(str(log), 2000)
        writer.start()
        wait_for(log.exists, "the log file is there")
        for name in commands:
            launch(name)
        for _ in range(rounds):
            # A random moment, not a wait for something to be true.
            time.sleep(rng.uniform(0.3, 2.0))
            for name in rng.sample(list(commands), rng.choice([1, 1, 1, 2, 3])):
                running[name].kill()
            for name in commands:
                if not running[name].running():
                    launch(name)
        writer.stop()
        total = writer.count
        database = self.dir / "sink" / "logs.db"

        def stored():
            try:
                return self.rows(database, "select count(distinct message) from logs")[0][0]
            except Exception:
                return -1
        try:
            wait_for(lambda: stored() >= total, "every line is stored", 120, every=0.5)
        except AssertionError:
            seen = {int(m.split()[-1]) for (m,) in self.rows(database, "select message from logs")}
            missing = sorted(set(range(total)) - seen)
            self.fail(f"seed {seed}: {len(missing)} of {total} lines are not stored, first {missing[:10]}, last {missing[-3:]}; "
                      + "; ".join(f"{n}: {p.tail()}" for n, p in running.items()))
        self.assertEqual(self.rows(database, "select count(*), count(distinct message) from logs"), [(total, total)], f"seed {seed}")
        for name in ("agent", "sink", "broker"):
            self.assertEqual(running[name].stop(), 0, running[name].tail())
