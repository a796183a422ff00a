"""One client, two brokers, the same run: kcat produces records of 1,000 bytes (acks=all) to one partition and reads them back, on the
embedded broker and on Apache Kafka, in turns. Held to the ratios, not to the times: those are the machine's.

    python3 -m bench.versus_kafka [MEGABYTES] [ROUNDS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench.figures import Figures
from tests.harness import Case, run

megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 300
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3


class Brokers(Case):
    """Starts and ends both brokers as the tests do."""

    def runTest(self):
        pass


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def back_memory(folder):
    """The host of a virtual machine gives it memory at the first touch, at a price (1.4 CPU seconds a GB were seen) that
    is neither broker's doing. Pages of a file that was just removed have been touched."""
    with tempfile.TemporaryFile(dir=folder) as file:
        block = b"x" * 1_000_000
        for _ in range(megabytes + megabytes // 4):
            file.write(block)


def timed(pid, argv):
    """MB a second of the client, and CPU seconds of the broker for each GB."""
    cpu, begin = cpu_seconds(pid), time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return megabytes / (time.monotonic() - begin), (cpu_seconds(pid) - cpu) * 1000 / megabytes


# The tests start Kafka with the quick compiler and a small heap; here it gets what it would have in service.
os.environ["_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=4 -Xmx1g"
brokers = Brokers()
brokers.setUp()
try:
    with tempfile.NamedTemporaryFile("w", prefix="weir-bench-") as lines:
        line = "x" * 999 + "\n"
        for _ in range(megabytes):
            lines.write(line * 1000)
        lines.flush()
        targets = {"weir": brokers.broker(), "kafka": brokers.kafka()}
        seen = {name: {"produce": [], "consume": []} for name in targets}
        for number in range(rounds):
            for name, (process, address) in targets.items():
                topic = f"bench-{number}"
                common = ["kcat", "-q", "-b", address, "-t", topic, "-p", "0", "-X", "linger.ms=10"]
                # The topic is made before the clock starts.
                run(common + ["-P"], stdin="first\n")
                back_memory(brokers.dir)
                seen[name]["produce"].append(timed(process.pid, common + ["-P", "-X", "acks=all", "-l", lines.name]))
                seen[name]["consume"].append(timed(process.pid, common + ["-C", "-e", "-o", "beginning"]))
    figures = Figures()
    for what, speed, cpu in (("produce", 1.5, 0.45), ("consume", 1.1, 0.25)):
        rate = {name: statistics.median(r for r, _ in seen[name][what]) for name in targets}
        cost = {name: statistics.median(c for _, c in seen[name][what]) for name in targets}
        for name in targets:
            figures.show(f"{what}, {name}", rate[name], "MB/s")
            figures.show(f"{what}, broker CPU for a GB, {name}", cost[name], "s")
        figures.show(f"{what}: weir against Kafka", rate["weir"] / rate["kafka"], "x", low=speed)
        figures.show(f"{what}: CPU against Kafka", cost["weir"] / max(cost["kafka"], 0.01), "x", high=cpu)
finally:
    brokers.tearDown()
figures.finish()
